// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/scheme"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

const (
	// writers write Pods, and watches watch them.
	writers, watches = 2, 3
	// pause is the time between two requests of a worker.
	pause = 40 * time.Millisecond
	// requestTimeout is longer than any request that the servers do not abort.
	requestTimeout = 90 * time.Second
	// streak is the number of requests in sequence that each worker must succeed
	// with before a disruption counts as over.
	streak = 20
)

// load is a set of workers that send requests through kube-apiserver. They repeat
// no request, so that each failure counts.
type load struct {
	client     rest.Interface
	home       string // the Namespace of the Pods
	watches    []*watcher
	stop       func() // ends the workers
	stopWatch  func()
	succeeded  []*atomic.Int64 // by worker, requests since the last failure
	mu         sync.Mutex
	requests   map[string]int // by verb
	failures   map[failure]int
	pods       map[types.UID]*written
	namespaces []string // acknowledged deletions
}

// written is what a worker knows about a Pod that it has created.
type written struct {
	name string
	// versions are the resourceVersions of the acknowledged writes.
	versions []uint64
	// label is the value of the last patch. It is uncertain if the patch failed.
	label     string
	uncertain bool
	// deleting means that the worker has sent the deletion, deleted that it was
	// acknowledged.
	deleting, deleted bool
}

// failure is what failed requests have in common.
type failure struct {
	verb       string
	code       int32 // 0 without a response
	retryAfter bool
	text       string
}

func (f failure) String() string {
	return fmt.Sprintf("%s: %d (Retry-After: %t) %s", f.verb, f.code, f.retryAfter, f.text)
}

// startLoad starts the workers and the watches.
func (s *site) startLoad(t *testing.T) *load {
	t.Helper()
	l := &load{client: s.tenancy(t, "").TenancyV1().RESTClient(), requests: map[string]int{}, failures: map[failure]int{}, pods: map[types.UID]*written{}}
	home := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "borough-load-"}}
	if err := l.client.Post().Resource("namespaces").Body(home).Do(t.Context()).Into(home); err != nil {
		t.Fatal(err)
	}
	l.home = home.Name

	watchCtx, stopWatch := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	for range watches {
		w := newWatcher(l, home.ResourceVersion)
		l.watches = append(l.watches, w)
		watching.Go(func() { w.run(watchCtx) })
	}
	l.stopWatch = func() { stopWatch(); watching.Wait() }

	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	l.stop = func() { stop(); working.Wait() }
	for i, work := range append(slices.Repeat([]func(*worker, int){(*worker).writePod}, writers), (*worker).writeNamespace) {
		w := &worker{load: l, prefix: fmt.Sprintf("%s-%d-", l.home, i), ctx: context.WithoutCancel(ctx), succeeded: &atomic.Int64{}}
		l.succeeded = append(l.succeeded, w.succeeded)
		working.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				work(w, n) // the last call runs to its end
			}
		})
	}
	t.Cleanup(func() { l.stop(); l.stopWatch() }) // if the test ends early
	l.awaitServed(t)
	return l
}

// awaitServed waits until every worker is served without failures.
func (l *load) awaitServed(t *testing.T) {
	t.Helper()
	for _, n := range l.succeeded {
		n.Store(0)
	}
	err := poll.Until(t.Context(), timeout, func(context.Context) error {
		for i, n := range l.succeeded {
			if n.Load() < streak {
				return fmt.Errorf("worker %d has %d successful requests since its last failure", i, n.Load())
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("the load is not served again: %v\n%s", err, l)
	}
}

// worker sends one request at a time.
type worker struct {
	*load
	prefix    string
	ctx       context.Context
	succeeded *atomic.Int64
}

// send sends a request once, and reports whether it succeeded.
func (w *worker) send(verb string, request *rest.Request, into runtime.Object) bool {
	_ = poll.Sleep(w.ctx, pause)
	ctx, cancel := context.WithTimeout(w.ctx, requestTimeout)
	defer cancel()
	result := request.MaxRetries(0).Do(ctx)
	err := result.Error()
	if err == nil && into != nil {
		err = result.Into(into)
	}
	w.count(verb, err)
	if err != nil {
		w.succeeded.Store(0)
		return false
	}
	w.succeeded.Add(1)
	return true
}

var numbers = regexp.MustCompile(`[0-9]+`)

// count counts a request and its failure.
func (l *load) count(verb string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests[verb]++
	if err == nil {
		return
	}
	f := failure{verb: verb, text: err.Error()}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		f.code = status.Status().Code
		_, f.retryAfter = apierrors.SuggestsClientDelay(err)
		// The body, if it is no Status: that of kube-apiserver, if it does not reach a
		// server.
		if details := status.Status().Details; details != nil {
			for _, cause := range details.Causes {
				f.text += ": " + cause.Message
			}
		}
	}
	f.text = numbers.ReplaceAllString(strings.ReplaceAll(f.text, l.home, "NAMESPACE"), "N")
	l.failures[f]++
}

// writePod creates, reads and patches a Pod, lists some, and deletes every second
// one.
func (w *worker) writePod(n int) {
	pod := harness.NewPod(w.prefix + strconv.Itoa(n))
	if !w.send("create", w.client.Post().Namespace(w.home).Resource("pods").Body(pod), pod) {
		return // whether it exists is unknown
	}
	o := &written{name: pod.Name, versions: []uint64{version(pod)}}
	w.mu.Lock()
	w.pods[pod.UID] = o
	w.mu.Unlock()
	w.send("get", w.client.Get().Namespace(w.home).Resource("pods").Name(pod.Name), &v1.Pod{})

	label := strconv.Itoa(n)
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"patched":%q}}}`, label)
	patched := w.send("patch", w.client.Patch(types.MergePatchType).Namespace(w.home).Resource("pods").Name(pod.Name).Body(patch), pod)
	w.mu.Lock()
	o.label, o.uncertain = label, !patched
	if patched {
		o.versions = append(o.versions, version(pod))
	}
	w.mu.Unlock()
	w.send("list", w.client.Get().Namespace(w.home).Resource("pods").Param("limit", "50"), &v1.PodList{})

	if n%2 == 0 {
		return
	}
	w.mu.Lock()
	o.deleting = true
	w.mu.Unlock()
	options := &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	deleted := w.send("delete", w.client.Delete().Namespace(w.home).Resource("pods").Name(pod.Name).Body(options), nil)
	w.mu.Lock()
	o.deleted = deleted
	w.mu.Unlock()
}

// writeNamespace creates a Namespace with a Pod and deletes it.
func (w *worker) writeNamespace(n int) {
	name := w.prefix + strconv.Itoa(n)
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if !w.send("create", w.client.Post().Resource("namespaces").Body(ns), ns) {
		return
	}
	w.send("create", w.client.Post().Namespace(name).Resource("pods").Body(harness.NewPod("pod")), nil)
	if w.send("delete", w.client.Delete().Resource("namespaces").Name(name), nil) {
		w.mu.Lock()
		w.namespaces = append(w.namespaces, name)
		w.mu.Unlock()
	}
}

// finish ends the load. The test fails if the rules do not allow a failure, if an
// acknowledged write was lost, if a watch lost or doubled an event, or if a deleted
// Namespace remains.
func (l *load) finish(t *testing.T, r rules) {
	t.Helper()
	l.awaitServed(t)
	l.stop()
	var list v1.PodList
	if err := l.client.Get().Namespace(l.home).Resource("pods").Do(t.Context()).Into(&list); err != nil {
		t.Fatal(err)
	}
	if err := l.compare(&list); err != nil {
		t.Error(err)
	}
	for i, w := range l.watches {
		// All writes have been sent, but maybe not all events.
		err := poll.Until(t.Context(), timeout, func(context.Context) error { return w.compare(l.pods) })
		if err != nil {
			t.Errorf("watch %d: %v", i, err)
		}
	}
	l.stopWatch()
	for _, name := range append(l.namespaces, l.home) {
		if name == l.home {
			if err := l.client.Delete().Resource("namespaces").Name(name).Do(t.Context()).Error(); err != nil {
				t.Fatal(err)
			}
		}
		awaitGone(t, "Namespace "+name, func(ctx context.Context) error {
			return l.client.Get().Resource("namespaces").Name(name).Do(ctx).Error()
		})
	}
	t.Log(l)
	if err := r.check(l.failures); err != nil {
		t.Errorf("failures that the rules do not allow: %v", err)
	}
}

// compare compares the Pods with the acknowledged writes.
func (l *load) compare(list *v1.PodList) error {
	pods := map[types.UID]*v1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].UID] = &list.Items[i]
	}
	var errs []error
	for uid, o := range l.pods {
		switch pod := pods[uid]; {
		case pod == nil && !o.deleting:
			errs = append(errs, fmt.Errorf("Pod %s was lost", o.name))
		case pod != nil && o.deleted:
			errs = append(errs, fmt.Errorf("Pod %s exists after its deletion", o.name))
		case pod != nil && !o.uncertain && pod.Labels["patched"] != o.label:
			errs = append(errs, fmt.Errorf("Pod %s lost a patch: it has %q, not %q", o.name, pod.Labels["patched"], o.label))
		}
	}
	return errors.Join(errs...)
}

func (l *load) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	total, failed := 0, 0
	for _, n := range l.requests {
		total += n
	}
	for _, n := range l.failures {
		failed += n
	}
	fmt.Fprintf(&b, "%d requests %v, %d failed; %d Namespaces deleted", total, l.requests, failed, len(l.namespaces))
	for _, f := range slices.SortedFunc(maps.Keys(l.failures), func(a, b failure) int { return cmp.Compare(a.String(), b.String()) }) {
		fmt.Fprintf(&b, "\n%d x %s", l.failures[f], f)
	}
	for i, w := range l.watches {
		fmt.Fprintf(&b, "\nwatch %d: %s", i, w)
	}
	return b.String()
}

// version returns the resourceVersion of an object of Borough.
func version(o metav1.Object) uint64 {
	v, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(err) // all are revisions of etcd
	}
	return v
}

// watchRequest returns a request for the events of Pods after a version.
func (l *load) watchRequest(version uint64) *rest.Request {
	return l.client.Get().Namespace(l.home).Resource("pods").MaxRetries(0).VersionedParams(&metav1.ListOptions{
		Watch: true, AllowWatchBookmarks: true, ResourceVersion: strconv.FormatUint(version, 10), TimeoutSeconds: new(int64(3600)),
	}, scheme.ParameterCodec)
}
