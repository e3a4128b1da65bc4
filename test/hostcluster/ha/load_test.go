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
	// pause is what each client waits between two requests at least, so that it
	// is the processes and not the machine that are tested.
	pause = 30 * time.Millisecond
	// meanwhile is how many writes are acknowledged before something else is
	// done to a process.
	meanwhile = 20
	// pageSize makes lists of several pages.
	pageSize = 50
)

// object is something that a client has created.
type object struct {
	resource
	name string
	// going says that a client wants it deleted, or its Namespace.
	going bool
}

// load is clients that write, list and watch all the time, through the host.
type load struct {
	site    *site
	retries retries
	figures figures
	// home is a Namespace that stays.
	home string

	writers, watchers         sync.WaitGroup
	stopWriters, stopWatchers context.CancelFunc
	records                   []*record
	written                   chan struct{}   // a token for each write
	rounds                    []*atomic.Int64 // of each writer

	mu      sync.Mutex
	objects map[types.UID]*object
	serial  int
}

// startLoad starts the clients. Something of each resource exists already.
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
				// What has begun is finished.
				if err := write(context.WithoutCancel(ctx), client); err != nil {
					l.figures.fail(err)
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

// awaitWrites returns after some writes have been acknowledged.
func (l *load) awaitWrites(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for range meanwhile {
		select {
		case <-l.written:
		case <-ctx.Done():
			return fmt.Errorf("wait for writes: %w", context.Cause(ctx))
		}
	}
	return nil
}

// awaitAll returns when every client has got somewhere, and every watcher knows
// of it. It says how long the two took.
func (l *load) awaitAll(ctx context.Context) (string, error) {
	began := time.Now()
	for _, rounds := range l.rounds {
		// One may have been as good as over.
		goal := rounds.Load() + 2
		err := await(ctx, func(context.Context) error {
			if n := rounds.Load(); n < goal {
				return fmt.Errorf("a client has not done %d rounds yet, but %d", goal, n)
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
				if !r.knows(uid) && o.resource == r.resource && !o.going {
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
	return fmt.Sprintf("every client was served within %s, and every watcher heard of it within %s", round(served), round(time.Since(began))), nil
}

// writePods creates a Pod that stays and one that does not.
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

// create creates an object. One that is there when it is tried again is its own:
// the name is nobody else's.
func create[T metav1.Object](ctx context.Context, l *load, resource resource, client creator[T], desired T) (created T, err error) {
	err = l.figures.do(ctx, l.retries, "create "+path.Join(string(resource), desired.GetName()), func(ctx context.Context, again bool) (err error) {
		created, err = client.Create(ctx, desired, metav1.CreateOptions{})
		if again && apierrors.IsAlreadyExists(err) {
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

// delete deletes an object, and content with it. One that is gone when it is
// tried again went by the first try.
func (l *load) delete(ctx context.Context, resource resource, client versioned.Interface, o metav1.Object, content ...types.UID) error {
	l.mu.Lock()
	for _, uid := range append(content, o.GetUID()) {
		l.objects[uid].going = true
	}
	l.mu.Unlock()
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(o.GetUID()))}
	err := l.figures.do(ctx, l.retries, "delete "+path.Join(string(resource), o.GetName()), func(ctx context.Context, again bool) (err error) {
		if resource == pods {
			err = client.TenancyV1().Pods(o.GetNamespace()).Delete(ctx, o.GetName(), options)
		} else {
			err = client.TenancyV1().Namespaces().Delete(ctx, o.GetName(), options)
		}
		if again && apierrors.IsNotFound(err) {
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
	default: // nobody waits
	}
}

// list lists the Pods that are at home, in pages, and looks for all that were
// there before.
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

// staying are the names of Pods at home that nobody wants deleted.
func (l *load) staying() map[types.UID]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := map[types.UID]string{}
	for uid, o := range l.objects {
		if o.resource == pods && !o.going && path.Dir(o.name) == l.home {
			names[uid] = o.name
		}
	}
	return names
}

// stop stops the clients. The test fails if a request of theirs failed, or what
// there is in the end is not what they were told, or a watch has missed
// something.
func (l *load) stop(t *testing.T) {
	t.Helper()
	l.stopWriters()
	l.figures.report(t)
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

// compare returns how what there is of a resource differs from what the clients
// have left.
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
		if name := accessor.GetName(); strings.HasPrefix(name, l.home+"-") && (o == nil || o.going) {
			return fmt.Errorf("%s %s is there, and is %+v to the clients", r, name, o)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for uid, o := range l.objects {
		if o.resource == r && !o.going && !there[uid] {
			return fmt.Errorf("%s %s was lost", r, o.name)
		}
	}
	return nil
}
