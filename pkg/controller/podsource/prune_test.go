// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/test/poll"
)

// TestPrune ends the controller, which deletes the Namespace, unless it waits for another.
func TestPrune(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	config := f.config()
	config.Prune = true
	config.LeaderElection = steadyLeaderElection
	_, stop := f.start(config)
	f.expect("a-node-1=image:1")

	second, stopSecond := f.start(config)
	f.expectReady(second)
	stopSecond()
	namespace, err := f.admin.TenancyV1().Namespaces().Get(t.Context(), f.namespace, metav1.GetOptions{})
	if err != nil || namespace.DeletionTimestamp != nil {
		t.Errorf("the Namespace is being deleted by a controller that has waited: %v, %v", namespace, err)
	}

	deleted := f.watchDeletion("a-node-1")
	stop()
	if pod := <-deleted; *pod.DeletionGracePeriodSeconds != 1 {
		t.Errorf("the Pod did not get its grace period: %v", pod.ObjectMeta)
	}
	f.expectNamespaceGone()
}

// TestPruneOfForeignNamespace ends a controller in a Namespace with the name of the source that
// a user has created. It stays.
func TestPruneOfForeignNamespace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, err := f.admin.TenancyV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}, metav1.CreateOptions{})
	f.must(err)
	f.write("a.yaml", newPod("a"))
	config := f.config()
	config.Prune = true
	c, err := New(f.server.Config(), config, f.metrics)
	f.must(err)
	stop := f.run(c)
	f.expect("a-node-1=image:1")
	f.must(stop())
	namespace, err := f.admin.TenancyV1().Namespaces().Get(t.Context(), f.namespace, metav1.GetOptions{})
	if err != nil || namespace.DeletionTimestamp != nil {
		t.Errorf("the Namespace is being deleted: %v, %v", namespace, err)
	}
}

// TestPruneWithoutLease stops a controller that has just lost the Lease: the Namespace is that
// of the other process.
func TestPruneWithoutLease(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	config := f.config()
	config.Prune, config.LeaderElection = true, leaderElection
	reader := &slowReader{Reader: config.Reader, ended: make(chan struct{}), proceed: make(chan struct{})}
	config.Reader = reader
	c := f.new(config)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- c.Run(ctx) }()
	f.expect("a-node-1=image:1")

	reader.armed.Store(true)
	poll.Eventually(t, func() string {
		f.takeLease()
		select {
		case <-reader.ended:
			return ""
		case <-time.After(10 * time.Second): // it had lost the Lease before, and did not read
			return "the controller reads without the Lease"
		}
	})
	cancel()
	close(reader.proceed)
	f.must(<-stopped)
	namespace, err := f.admin.TenancyV1().Namespaces().Get(t.Context(), f.namespace, metav1.GetOptions{})
	if err != nil || namespace.DeletionTimestamp != nil {
		t.Errorf("the Namespace is being deleted: %v, %v", namespace, err)
	}
}

// slowReader is a Reader that, once it is armed, returns some time after its context has
// ended. It can do so once.
type slowReader struct {
	source.Reader
	armed          atomic.Bool
	ended, proceed chan struct{}
}

func (r *slowReader) Run(ctx context.Context, handle func(source.Content, error)) error {
	err := r.Reader.Run(ctx, handle)
	if r.armed.Load() {
		close(r.ended)
		<-r.proceed
	}
	return err
}

// runPruning runs a controller that deletes the Namespace at the end, and waits for its Pod a.
func (f *fixture) runPruning(pod *v1.Pod) (stop func() error) {
	f.Helper()
	f.write("a.yaml", pod)
	config := f.config()
	config.Prune = true
	stop = f.run(f.new(config))
	f.expect("a-node-1=image:1")
	return stop
}

// TestPruneOfProtected ends a controller whose Namespace may not be deleted. Its Pods stay.
func TestPruneOfProtected(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stop := f.runPruning(newPod("a"))
	_, err := f.admin.TenancyV1().Namespaces().Patch(t.Context(), f.namespace, types.MergePatchType, []byte(`{"spec":{"deletionProtection":true}}`), metav1.PatchOptions{})
	f.must(err)
	if err := stop(); !apierrors.HasStatusCause(err, v1.NamespaceProtectedCause) {
		t.Errorf("got %v", err)
	}
	f.expect("a-node-1=image:1")
}

// TestPruneRetries loses the response to the DELETE of the Namespace, and then fails a list of the
// Pods.
func TestPruneRetries(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var deleted, failed atomic.Bool
	f.wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			switch {
			case req.Method == http.MethodDelete && strings.HasSuffix(req.URL.Path, "/namespaces/"+f.namespace) && !deleted.Swap(true):
				response, err := next.RoundTrip(req)
				if err == nil {
					err = response.Body.Close()
				}
				return nil, errors.Join(errors.New("connection reset"), err)
			case deleted.Load() && strings.HasSuffix(req.URL.Path, "/pods") && req.Method == http.MethodGet && !failed.Swap(true):
				return nil, errors.New("connection refused")
			}
			return next.RoundTrip(req)
		})
	}
	stop := f.runPruning(newPod("a"))
	f.must(stop())
	if !failed.Load() {
		t.Error("the Pods were not listed")
	}
	f.expectNamespaceGone()
}

// TestPruneOfNewNamespace lets a user delete the Namespace and create it again just before the
// DELETE of the controller. The new one stays as it is.
func TestPruneOfNewNamespace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	client := f.admin.TenancyV1().Namespaces()
	labeled := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace, Labels: map[string]string{source.Label: f.identity.ID()}}}
	old, err := client.Create(t.Context(), labeled, metav1.CreateOptions{})
	f.must(err)

	var created *v1.Namespace
	config := f.server.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodDelete && created == nil {
				f.must(client.Delete(t.Context(), f.namespace, metav1.DeleteOptions{}))
				f.expectNamespaceGone()
				created, err = client.Create(t.Context(), labeled, metav1.CreateOptions{})
				f.must(err)
			}
			return next.RoundTrip(req)
		})
	})
	c, err := New(config, f.config(), f.metrics)
	f.must(err)
	if _, _, err := c.pruneOnce(t.Context(), old.UID); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	namespace, next, err := c.pruneOnce(t.Context(), old.UID)
	if err != nil || namespace != nil || !next.IsZero() {
		t.Errorf("the second call returns %v, %v, %v", namespace, next, err)
	}
	namespace, err = client.Get(t.Context(), f.namespace, metav1.GetOptions{})
	f.must(err)
	if namespace.UID != created.UID || namespace.DeletionTimestamp != nil {
		t.Errorf("the new Namespace %s is %v", created.UID, namespace)
	}
}

// TestPruneEndsEarly deletes a Pod at once that has been given a long grace period. The
// controller does not wait for the end of that period.
func TestPruneEndsEarly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stop := f.runPruning(newPod("a", func(pod *v1.Pod) { pod.Spec.TerminationGracePeriodSeconds = new(int64(24 * 60 * 60)) }))
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	f.expect("a-node-1=image:1 (being deleted)")
	f.must(f.admin.TenancyV1().Pods(f.namespace).Delete(t.Context(), "a-node-1", *metav1.NewDeleteOptions(0)))
	f.must(<-ended)
	f.expectNamespaceGone()
}

func (f *fixture) expectNamespaceGone() {
	f.Helper()
	poll.Eventually(f.TB, func() string {
		namespace, err := f.admin.TenancyV1().Namespaces().Get(f.Context(), f.namespace, metav1.GetOptions{})
		if !tenancyerrors.IsObjectNotFound(err) {
			return fmt.Sprintf("the Namespace is not gone: %v, %v", namespace, err)
		}
		return ""
	})
}

// TestGracePeriodInWholeSeconds confirms the end of a Pod whose grace period ends within the
// second that the API shows.
func TestGracePeriodInWholeSeconds(t *testing.T) {
	for _, tc := range []struct {
		after   time.Duration
		deleted bool
	}{{0, false}, {999 * time.Millisecond, false}, {time.Second, true}} {
		t.Run(tc.after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shown := metav1.NewTime(time.Now().Truncate(time.Second))
				pod := &unstructured.Unstructured{}
				pod.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("Pod"))
				pod.SetNamespace("n")
				pod.SetName("p")
				pod.SetDeletionTimestamp(&shown)
				client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), pod)
				c := &Controller{podClient: client.Resource(podResource).Namespace("n")}
				time.Sleep(tc.after)
				again, err := c.deletePod(t.Context(), pod)
				if err != nil || again.IsZero() != tc.deleted || len(client.Actions()) > 0 != tc.deleted {
					t.Errorf("got %v, %v, requests %v", again, err, client.Actions())
				}
			})
		})
	}
}
