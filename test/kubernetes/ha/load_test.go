// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
)

const (
	// pause is the minimum time between two requests of a client. It keeps the
	// load low enough for the machine.
	pause = 100 * time.Millisecond
	// writesBetween is the number of writes to wait for between two disruptions of
	// a process.
	writesBetween = 20
	// pageSize is small so that lists have several pages.
	pageSize = 50
)

// object is an object that a client has created.
type object struct {
	resource
	name string
	// deleting means that a client has deleted it or its Namespace.
	deleting bool
}

// load is a set of clients that write, list and watch continuously through
// kube-apiserver.
type load struct {
	site    *site
	retries retries
	figures figures
	// home is a Namespace that is not deleted.
	home string

	writers, watchers         sync.WaitGroup
	stopWriters, stopWatchers context.CancelFunc
	records                   []*record
	written                   chan struct{}   // receives a token for each write
	rounds                    []*atomic.Int64 // completed by each writer

	mu      sync.Mutex
	objects map[types.UID]*object
	serial  int
}

// startLoad starts the clients.
func (s *site) startLoad(t *testing.T, retries retries) *load {
	t.Helper()
	l := &load{site: s, retries: retries, written: make(chan struct{}, 1), objects: map[types.UID]*object{}}
	home, err := s.cluster.BoroughClient(t).TenancyV1().Namespaces().Create(t.Context(),
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "home-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a Namespace: %v", err)
	}
	l.home = home.Name

	watchCtx, stopWatchers := context.WithCancel(t.Context())
	records, waitInformers := l.startInformers(watchCtx, t)
	l.records = records
	for _, r := range []*record{newRecord("a watch of pods", pods), newRecord("another watch of pods", pods), newRecord("a watch of namespaces", namespaces)} {
		l.records = append(l.records, r)
		client := l.figures.newClient(t, s.cluster)
		l.watchers.Go(func() { l.watchRaw(watchCtx, client, r, home.ResourceVersion) })
	}
	l.stopWatchers = func() {
		stopWatchers()
		waitInformers()
		l.watchers.Wait()
	}

	ctx, stopWriters := context.WithCancel(t.Context())
	l.stopWriters = func() {
		stopWriters()
		l.writers.Wait()
	}
	for _, write := range []func(context.Context, versioned.Interface) error{l.writePods, l.writePods, l.writeNamespace, l.writeNamespace, l.list} {
		client, rounds := l.figures.newClient(t, s.cluster), &atomic.Int64{}
		l.rounds = append(l.rounds, rounds)
		l.writers.Go(func() {
			tick := time.NewTicker(pause)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				// The last call runs to its end.
				if err := write(context.WithoutCancel(ctx), client); err != nil {
					l.figures.failures.Add(err)
				}
				rounds.Add(1)
			}
		})
	}
	t.Cleanup(func() { // if the test ends early
		l.stopWriters()
		l.stopWatchers()
	})
	return l
}

// awaitWrites returns after writesBetween writes have been acknowledged.
func (l *load) awaitWrites(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for range writesBetween {
		select {
		case <-l.written:
		case <-ctx.Done():
			return fmt.Errorf("wait for writes: %w", context.Cause(ctx))
		}
	}
	return nil
}

// awaitAll returns when every client has completed a round and every watcher
// has seen its writes. It returns how long both took.
func (l *load) awaitAll(ctx context.Context) (string, error) {
	began := time.Now()
	for _, rounds := range l.rounds {
		// The current round may be almost complete.
		goal := rounds.Load() + 2
		err := await(ctx, func(context.Context) error {
			if n := rounds.Load(); n < goal {
				return fmt.Errorf("a client has not completed %d rounds yet, only %d", goal, n)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	served := time.Since(began)
	l.mu.Lock()
	created := slices.Collect(maps.Keys(l.objects))
	l.mu.Unlock()
	for _, r := range l.records {
		err := await(ctx, func(context.Context) error {
			for _, uid := range created {
				l.mu.Lock()
				o := *l.objects[uid]
				l.mu.Unlock()
				if !r.knows(uid) && o.resource == r.resource && !o.deleting {
					return fmt.Errorf("%s has not seen %s", r.name, o.name)
				}
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	round := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	return fmt.Sprintf("every client was served within %s, and every watcher saw it within %s", round(served), round(time.Since(began))), nil
}

// writePods creates one Pod that stays and one that it deletes.
func (l *load) writePods(ctx context.Context, client versioned.Interface) error {
	if _, err := l.createPod(ctx, client, l.home); err != nil {
		return err
	}
	pod, err := l.createPod(ctx, client, l.home)
	if err != nil {
		return err
	}
	return l.delete(ctx, pods, client, pod)
}

// writeNamespace creates a Namespace with content and deletes it.
func (l *load) writeNamespace(ctx context.Context, client versioned.Interface) error {
	ns, err := l.createNamespace(ctx, client)
	if err != nil {
		return err
	}
	var content []types.UID
	for range 2 {
		pod, err := l.createPod(ctx, client, ns.Name)
		if err != nil {
			return err
		}
		content = append(content, pod.UID)
	}
	return l.delete(ctx, namespaces, client, ns, content...)
}

func (l *load) createPod(ctx context.Context, client versioned.Interface, namespace string) (*v1.Pod, error) {
	return create(ctx, l, pods, client.TenancyV1().Pods(namespace), &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: l.newName("pod"), Namespace: namespace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/image:1"}}},
	})
}

func (l *load) createNamespace(ctx context.Context, client versioned.Interface) (*v1.Namespace, error) {
	return create(ctx, l, namespaces, client.TenancyV1().Namespaces(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.newName("ns")}})
}

func (l *load) newName(kind string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serial++
	return fmt.Sprintf("%s-%s-%d", l.home, kind, l.serial)
}

// creator is a typed client of a kind.
type creator[T any] interface {
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
}

// create creates an object. If a retry returns AlreadyExists, the object is
// from the first attempt, because names are unique.
func create[T metav1.Object](ctx context.Context, l *load, resource resource, client creator[T], desired T) (created T, err error) {
	err = l.figures.do(ctx, l.retries, "create "+path.Join(string(resource), desired.GetName()), func(ctx context.Context, retried bool) (err error) {
		created, err = client.Create(ctx, desired, metav1.CreateOptions{})
		if retried && apierrors.IsAlreadyExists(err) {
			created, err = client.Get(ctx, desired.GetName(), metav1.GetOptions{})
		}
		return err
	})
	if err != nil {
		return created, err
	}
	l.mu.Lock()
	l.objects[created.GetUID()] = &object{resource: resource, name: path.Join(created.GetNamespace(), created.GetName())}
	l.mu.Unlock()
	l.wrote()
	return created, nil
}

// delete deletes an object, including the content of a Namespace. If a retry
// returns NotFound, the first attempt succeeded.
func (l *load) delete(ctx context.Context, resource resource, client versioned.Interface, o metav1.Object, content ...types.UID) error {
	l.mu.Lock()
	for _, uid := range append(content, o.GetUID()) {
		l.objects[uid].deleting = true
	}
	l.mu.Unlock()
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(o.GetUID()))}
	err := l.figures.do(ctx, l.retries, "delete "+path.Join(string(resource), o.GetName()), func(ctx context.Context, retried bool) (err error) {
		if resource == pods {
			err = client.TenancyV1().Pods(o.GetNamespace()).Delete(ctx, o.GetName(), options)
		} else {
			err = client.TenancyV1().Namespaces().Delete(ctx, o.GetName(), options)
		}
		if retried && apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err == nil {
		l.wrote()
	}
	return err
}

func (l *load) wrote() {
	select {
	case l.written <- struct{}{}:
	default: // no test waits
	}
}

// list lists the Pods in home in pages, and checks that all Pods from before
// the list are in it.
func (l *load) list(ctx context.Context, client versioned.Interface) error {
	missing := l.staying()
	options := metav1.ListOptions{Limit: pageSize}
	for {
		err := l.figures.do(ctx, l.retries, "list pods", func(ctx context.Context, _ bool) error {
			page, err := client.TenancyV1().Pods(l.home).List(ctx, options)
			if err != nil {
				return err
			}
			for i := range page.Items {
				delete(missing, page.Items[i].UID)
			}
			options.Continue = page.Continue
			return nil
		})
		if err != nil {
			return err
		}
		if options.Continue == "" {
			break
		}
	}
	staying := l.staying()
	for uid, name := range missing {
		if _, stays := staying[uid]; stays {
			return fmt.Errorf("the list of pods misses %s", name)
		}
	}
	return nil
}

// staying returns the names of the Pods in home that are not deleted.
func (l *load) staying() map[types.UID]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := map[types.UID]string{}
	for uid, o := range l.objects {
		if o.resource == pods && !o.deleting && path.Dir(o.name) == l.home {
			names[uid] = o.name
		}
	}
	return names
}

// stop stops the clients. The test fails if a request failed, if the remaining
// objects differ from the acknowledged writes, or if a watch missed an event.
func (l *load) stop(t *testing.T) {
	t.Helper()
	l.stopWriters()
	l.figures.failures.Report(t)
	client := l.site.cluster.BoroughClient(t)
	for _, r := range []resource{namespaces, pods} {
		if err := await(t.Context(), func(ctx context.Context) error { return l.compare(ctx, client, r) }); err != nil {
			t.Error(err)
		}
	}
	for _, r := range l.records {
		if err := await(t.Context(), func(context.Context) error { return r.verify(l.objects) }); err != nil {
			t.Error(err)
		}
	}
	l.stopWatchers()
	t.Log(&l.figures)
	t.Logf("%d objects created", len(l.objects))
	for _, r := range l.records {
		t.Log(r)
	}
}

// compare returns an error if the existing objects of a resource differ from
// those that the clients expect.
func (l *load) compare(ctx context.Context, client versioned.Interface, r resource) error {
	list, err := r.list(ctx, client, metav1.ListOptions{})
	if err != nil {
		return err
	}
	there := map[types.UID]bool{}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		accessor, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		o := l.objects[accessor.GetUID()]
		there[accessor.GetUID()] = true
		if name := accessor.GetName(); strings.HasPrefix(name, l.home+"-") && (o == nil || o.deleting) {
			return fmt.Errorf("%s %s exists, the clients expect %+v", r, name, o)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for uid, o := range l.objects {
		if o.resource == r && !o.deleting && !there[uid] {
			return fmt.Errorf("%s %s was lost", r, o.name)
		}
	}
	return nil
}
