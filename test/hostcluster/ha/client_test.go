// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/hostcluster"
)

// retries says what clients do about requests that fail, besides what client-go
// does by itself for everybody, kubectl too: it makes a request again when the
// answer asks for it (429 or 5xx with Retry-After), and a GET also when the
// connection was cut.
type retries bool

const (
	// none is for what is done in good order: nobody is to notice.
	none retries = false
	// requeue is for what breaks: like a controller, a client makes a request
	// again, a little later, that failed for a reason that passes.
	requeue retries = true
)

// passes says whether the reason for which a request failed may be gone the next
// time.
func passes(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// figures are what a load comes to.
type figures struct {
	// requests are those on the wire, again those that client-go made again, and
	// requeued those that a client did.
	requests, again, requeued atomic.Int64
	// slowest is how long the slowest request took, all tries included.
	slowest atomic.Int64

	mu     sync.Mutex
	failed []error
}

func (f *figures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("%d requests on the wire, %d of them made again by client-go and %d by the client, %d failed; the slowest took %s",
		f.requests.Load(), f.again.Load(), f.requeued.Load(), len(f.failed), time.Duration(f.slowest.Load()).Round(time.Millisecond))
}

func (f *figures) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = append(f.failed, fmt.Errorf("at %s: %w", time.Now().Format(time.StampMilli), err))
}

// report fails the test if anything failed.
func (f *figures) report(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, err := range f.failed {
		if i == 10 {
			t.Errorf("and %d more", len(f.failed)-i)
			break
		}
		t.Error(err)
	}
}

// newClient returns a client, through the host, whose requests count.
func (f *figures) newClient(t *testing.T, cluster *hostcluster.Cluster) versioned.Interface {
	t.Helper()
	config := cluster.AdminConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			f.requests.Add(1)
			response, err := next.RoundTrip(request)
			if err == nil && response.Header.Get("Retry-After") != "" {
				f.again.Add(1)
			}
			return response, err
		})
	})
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	return client
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// do makes a request, and again as the retries say. The request is told whether
// it was made before, in which case it may have been carried out.
func (f *figures) do(ctx context.Context, retries retries, what string, request func(ctx context.Context, again bool) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	again := false
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 6, Cap: time.Second}
	for {
		err := request(ctx, again)
		if err == nil {
			took := int64(time.Since(began))
			for slowest := f.slowest.Load(); took > slowest && !f.slowest.CompareAndSwap(slowest, took); slowest = f.slowest.Load() {
			}
			return nil
		}
		err = fmt.Errorf("%s: %w", what, err)
		if retries == none || !passes(err) {
			return err
		}
		f.requeued.Add(1)
		again = true
		timer := time.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-timer.C:
		}
	}
}
