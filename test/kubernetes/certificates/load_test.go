// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// pause is the time between two requests of a client. It keeps the load low
// enough for the machine.
const pause = 200 * time.Millisecond

// load is a set of clients that send requests continuously.
type load struct {
	cancel   context.CancelFunc
	clients  sync.WaitGroup
	requests atomic.Int64
	failures testcluster.Failures
}

// startLoad starts clients that read and write through kube-apiserver, and one
// that watches what they write. None of them retries.
func startLoad(t *testing.T, cluster *testcluster.Cluster) *load {
	t.Helper()
	ns, err := cluster.BoroughClient(t).TenancyV1().Namespaces().Create(t.Context(),
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "load-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a Namespace: %v", err)
	}
	// The watch ends last, so that it gets all events.
	watchCtx, cancelWatch := context.WithCancel(t.Context())
	watcher, err := cluster.BoroughClient(t).TenancyV1().LimitRanges(ns.Name).Watch(watchCtx,
		metav1.ListOptions{ResourceVersion: ns.ResourceVersion, TimeoutSeconds: new(int64(3600))})
	if err != nil {
		cancelWatch()
		t.Fatalf("watch: %v", err)
	}
	written := make(chan string)
	l := &load{}
	var watching sync.WaitGroup
	watching.Go(func() { l.watch(watcher, written) })

	ctx, cancel := context.WithCancel(t.Context())
	l.cancel = func() {
		cancel()
		l.clients.Wait()
		close(written)
		watching.Wait()
		cancelWatch()
		watcher.Stop()
	}
	var writes atomic.Int64
	for range 2 {
		writer, reader := cluster.BoroughClient(t), cluster.BoroughClient(t)
		l.repeat(ctx, func(ctx context.Context) error {
			name := fmt.Sprintf("limits-%d", writes.Add(1))
			if err := write(ctx, writer, ns.Name, name); err != nil {
				return err
			}
			written <- name
			return nil
		})
		l.repeat(ctx, func(ctx context.Context) error {
			return do(ctx, reader, "GET", ns.Name, "", nil)
		})
	}
	return l
}

// stop stops the clients and fails the test if one of their requests failed or
// the watch missed an event.
func (l *load) stop(t *testing.T) {
	t.Helper()
	l.cancel()
	l.failures.Report(t)
	if l.requests.Load() == 0 {
		t.Error("there were no requests")
	}
	t.Logf("%d requests, %d failures", l.requests.Load(), l.failures.Count())
}

// repeat calls do until the context ends. It finishes the last call.
func (l *load) repeat(ctx context.Context, do func(context.Context) error) {
	l.clients.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			l.requests.Add(1)
			if err := do(context.WithoutCancel(ctx)); err != nil {
				l.failures.Add(err)
			}
		}
	})
}

// write creates an object and deletes it.
func write(ctx context.Context, client versioned.Interface, namespace, name string) error {
	err := do(ctx, client, "POST", namespace, "", &v1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod}}},
	})
	if err != nil {
		return err
	}
	return do(ctx, client, "DELETE", namespace, name, nil)
}

// do sends one request without retries, also if the response asks for a retry.
func do(ctx context.Context, client versioned.Interface, verb, namespace, name string, body *v1.LimitRange) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request := client.TenancyV1().RESTClient().Verb(verb).MaxRetries(0).Namespace(namespace).Resource("limitranges")
	if name != "" {
		request = request.Name(name)
	}
	if body != nil {
		request = request.Body(body)
	}
	if err := request.Do(ctx).Error(); err != nil {
		return fmt.Errorf("%s limitranges/%s: %w", verb, name, err)
	}
	return nil
}

// watch follows the written objects until the writers end and each object was
// reported as added and deleted.
func (l *load) watch(watcher watch.Interface, written <-chan string) {
	events := map[watch.EventType]map[string]bool{watch.Added: {}, watch.Deleted: {}}
	missing := map[string]bool{}
	deadline := make(<-chan time.Time)
	for written != nil || len(missing) > 0 {
		select {
		case name, ok := <-written:
			if !ok {
				written, deadline = nil, time.After(timeout)
				continue
			}
			if !events[watch.Deleted][name] {
				missing[name] = true
			}
		case event, ok := <-watcher.ResultChan():
			if !ok {
				l.failures.Add(errors.New("the watch ended"))
				for written != nil { // until the writers end
					if _, ok := <-written; !ok {
						return
					}
				}
				return
			}
			object, isLimitRange := event.Object.(*v1.LimitRange)
			if !isLimitRange {
				l.failures.Add(fmt.Errorf("the watch reported %s: %v", event.Type, event.Object))
				continue
			}
			if seen := events[event.Type]; seen != nil {
				seen[object.Name] = true
			}
			if event.Type == watch.Deleted {
				if !events[watch.Added][object.Name] {
					l.failures.Add(fmt.Errorf("the watch missed the ADDED event of %s", object.Name))
				}
				delete(missing, object.Name)
			}
		case <-deadline:
			l.failures.Add(fmt.Errorf("the watch missed %d DELETED events", len(missing)))
			return
		}
	}
}
