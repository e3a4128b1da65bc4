// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// retries is whether clients retry failed requests in addition to client-go.
// client-go, also in kubectl, retries a request if the response asks for it
// (429 or 5xx with Retry-After), and a GET also if the connection breaks.
type retries bool

const (
	// none is for graceful operations, which clients must not notice.
	none retries = false
	// requeue is for failures: like a controller, a client retries after a short
	// delay if the error is transient.
	requeue retries = true
)

// isTransient reports whether a retry may succeed after the error.
func isTransient(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	if errors.As(err, new(http2.StreamError)) {
		return true // the server ended while it sent the response
	}
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// figures are the measurements of a load.
type figures struct {
	// requests counts those sent, retried those of them that client-go retried,
	// and requeued those that a client retried.
	requests, retried, requeued atomic.Int64
	// slowest is the longest duration of a request, including retries.
	slowest atomic.Int64

	failures testcluster.Failures
}

func (f *figures) String() string {
	return fmt.Sprintf("%d requests sent, %d of them retried by client-go and %d by the client, %d failed; the slowest took %s",
		f.requests.Load(), f.retried.Load(), f.requeued.Load(), f.failures.Count(), time.Duration(f.slowest.Load()).Round(time.Millisecond))
}

// newClient returns a client, through kube-apiserver, whose requests are
// counted.
func (f *figures) newClient(t *testing.T, cluster *testcluster.Cluster) versioned.Interface {
	t.Helper()
	config := cluster.AdminConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			f.requests.Add(1)
			response, err := next.RoundTrip(request)
			if err == nil && response.Header.Get("Retry-After") != "" {
				f.retried.Add(1)
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

// do calls request and, depending on retries, retries it. The argument retried
// says that it was sent before, in which case it may have been carried out.
func (f *figures) do(ctx context.Context, retries retries, what string, request func(ctx context.Context, retried bool) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	retried := false
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 6, Cap: time.Second}
	for {
		err := request(ctx, retried)
		if err == nil {
			took := int64(time.Since(began))
			for slowest := f.slowest.Load(); took > slowest && !f.slowest.CompareAndSwap(slowest, took); slowest = f.slowest.Load() {
			}
			return nil
		}
		err = fmt.Errorf("%s: %w", what, err)
		if retries == none || !isTransient(err) {
			return err
		}
		f.requeued.Add(1)
		retried = true
		timer := time.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-timer.C:
		}
	}
}
