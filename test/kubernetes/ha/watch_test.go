// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
)

// resource is a resource that is watched.
type resource string

const (
	namespaces resource = "namespaces"
	pods       resource = "pods"
)

// record is what a watcher has seen.
type record struct {
	name string
	resource

	mu   sync.Mutex
	seen map[types.UID]*eventCounts
	// reconnects counts watches that continued where the last one ended, relists
	// those that had to list again. After a relist no object is missed, except one
	// that was created and deleted in between.
	reconnects, relists atomic.Int64
	events              atomic.Int64
}

// eventCounts counts the events of an object.
type eventCounts struct{ added, deleted int }

func newRecord(name string, resource resource) *record {
	return &record{name: name, resource: resource, seen: map[types.UID]*eventCounts{}}
}

func (r *record) see(object any, event watch.EventType) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		panic(err) // all our objects have metadata
	}
	r.events.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seen[accessor.GetUID()]
	if s == nil {
		s = &eventCounts{}
		r.seen[accessor.GetUID()] = s
	}
	switch event {
	case watch.Added:
		s.added++
	case watch.Deleted:
		s.deleted++
	}
}

func (r *record) knows(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[uid] != nil
}

// verify returns the events that the watcher missed or got twice.
func (r *record) verify(expected map[types.UID]*object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var wrong []error
	for uid, o := range expected {
		if o.resource != r.resource {
			continue
		}
		s, want := eventCounts{}, eventCounts{added: 1}
		if o.deleting {
			want.deleted = 1
		}
		if seen := r.seen[uid]; seen != nil {
			s = *seen
		}
		if s != want && !(r.relists.Load() > 0 && o.deleting && s == eventCounts{}) {
			wrong = append(wrong, fmt.Errorf("%s saw %s %s added %d and deleted %d times, want %d and %d",
				r.name, r.resource, o.name, s.added, s.deleted, want.added, want.deleted))
		}
	}
	if len(wrong) > 3 {
		wrong = append(wrong[:3], fmt.Errorf("and %d more", len(wrong)-3))
	}
	return errors.Join(wrong...)
}

func (r *record) String() string {
	return fmt.Sprintf("%s: %d events, reconnected %d times, relisted %d times", r.name, r.events.Load(), r.reconnects.Load(), r.relists.Load())
}

// list lists a resource in all Namespaces; watch watches it.
func (r resource) list(ctx context.Context, client versioned.Interface, options metav1.ListOptions) (runtime.Object, error) {
	if r == pods {
		return client.TenancyV1().Pods("").List(ctx, options)
	}
	return client.TenancyV1().Namespaces().List(ctx, options)
}

func (r resource) watch(ctx context.Context, client versioned.Interface, options metav1.ListOptions) (watch.Interface, error) {
	if r == pods {
		return client.TenancyV1().Pods("").Watch(ctx, options)
	}
	return client.TenancyV1().Namespaces().Watch(ctx, options)
}

// watchRaw records the events of a plain watch from a resourceVersion on, and
// reconnects when it ends, until the context ends.
func (l *load) watchRaw(ctx context.Context, client versioned.Interface, r *record, from string) {
	at := from
	for ctx.Err() == nil {
		var watcher watch.Interface
		err := l.figures.do(ctx, l.retries, "watch "+r.name, func(context.Context, bool) (err error) {
			watcher, err = r.watch(ctx, client, metav1.ListOptions{ResourceVersion: at, AllowWatchBookmarks: true, TimeoutSeconds: new(int64(3600))})
			return err
		})
		if err == nil {
			at, err = r.follow(watcher, at)
			watcher.Stop()
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			r.reconnects.Add(1)
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			r.relists.Add(1)
			if at, err = l.relist(ctx, client, r); err != nil {
				l.figures.failures.Add(err)
				return
			}
		case l.retries == requeue && (isTransient(err) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)):
			r.reconnects.Add(1)
		default:
			l.figures.failures.Add(fmt.Errorf("%s: %w", r.name, err))
			return
		}
	}
}

// follow records events until the watch ends, and returns the last
// resourceVersion.
func (r *record) follow(watcher watch.Interface, at string) (string, error) {
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return at, apierrors.FromObject(event.Object)
		}
		accessor, err := meta.Accessor(event.Object)
		if err != nil {
			return at, fmt.Errorf("an event of type %s has a %T: %w", event.Type, event.Object, err)
		}
		if !later(accessor.GetResourceVersion(), at) && event.Type != watch.Bookmark {
			return at, fmt.Errorf("event %s of %s at %s is not after the one at %s", event.Type, accessor.GetName(), accessor.GetResourceVersion(), at)
		}
		at = accessor.GetResourceVersion()
		if event.Type != watch.Bookmark {
			r.see(event.Object, event.Type)
		}
	}
	return at, nil
}

// relist compares the existing objects with the recorded ones, as an informer
// does.
func (l *load) relist(ctx context.Context, client versioned.Interface, r *record) (at string, err error) {
	var list runtime.Object
	err = l.figures.do(ctx, l.retries, "list for "+r.name, func(ctx context.Context, _ bool) (err error) {
		list, err = r.list(ctx, client, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return "", err
	}
	there := map[types.UID]bool{}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		accessor, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		there[accessor.GetUID()] = true
		if !r.knows(accessor.GetUID()) {
			r.see(item, watch.Added)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, s := range r.seen {
		if !there[uid] && s.deleted == 0 {
			s.deleted++
		}
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return "", err
	}
	return accessor.GetResourceVersion(), nil
}

func later(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x > y
}

// startInformers records the events of informers, one record for each resource,
// until the context ends.
func (l *load) startInformers(ctx context.Context, t *testing.T) (records []*record, wait func()) {
	t.Helper()
	config := l.site.cluster.AdminConfig()
	byResource := map[string]*record{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			r := byResource[path.Base(request.URL.Path)]
			if query := request.URL.Query(); query.Get("watch") == "" || query.Get("sendInitialEvents") == "true" {
				r.relists.Add(1)
			} else {
				r.reconnects.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	factory := externalversions.NewSharedInformerFactory(client, 0)
	for resource, informer := range map[resource]cache.SharedIndexInformer{
		namespaces: factory.Tenancy().V1().Namespaces().Informer(),
		pods:       factory.Tenancy().V1().Pods().Informer(),
	} {
		r := newRecord("the informer of "+string(resource), resource)
		byResource[string(resource)] = r
		records = append(records, r)
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { r.see(object, watch.Added) },
			UpdateFunc: func(_, object any) { r.see(object, watch.Modified) },
			DeleteFunc: func(object any) { r.see(object, watch.Deleted) },
		})
		if err != nil {
			t.Fatalf("watch: %v", err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for _, r := range records { // the first list is no relist
		r.relists.Store(0)
		r.reconnects.Store(0)
	}
	return records, factory.Shutdown
}
