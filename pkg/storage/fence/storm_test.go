// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/fence"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
)

// creators is how many goroutines create content at each of the two servers.
const creators = 6

// TestStorm creates content in Namespaces while these are deleted and created
// again, through two servers, and then checks the history of etcd.
func TestStorm(t *testing.T) {
	rounds := 60
	if testing.Short() || harness.RaceEnabled { // the race detector makes each round cost more
		rounds = 10
	}
	s := newStorm(t)
	s.run(rounds, false)
	if v := s.violations(); len(v) > 0 {
		t.Errorf("%d violations:\n%s", len(v), strings.Join(v, "\n"))
	}
	t.Logf("%d rounds in each of %d namespaces: %d created, %d denied", rounds, len(stormNamespaces), s.created.Load(), s.denied.Load())
	if s.created.Load() == 0 || s.denied.Load() == 0 {
		t.Error("the storm has not shown anything")
	}
}

// TestStormUnfenced shows that the storm finds orphans without the fence. The creators
// read the Namespace first, as an admission plugin would, which is not enough.
func TestStormUnfenced(t *testing.T) {
	fence.TurnOff(t)
	s := newStorm(t)
	for range 100 {
		s.run(10, true)
		if v := s.violations(); len(v) > 0 {
			t.Logf("%d orphans among %d created", len(v), s.created.Load())
			return
		}
	}
	t.Error("no orphan without the fence: the storm shows nothing")
}

var stormNamespaces = []string{"a", "ab", "b"}

type storm struct {
	t       *testing.T
	client  *clientv3.Client
	servers [2]storagetest.Stores

	created, denied atomic.Int64
}

func newStorm(t *testing.T) *storm {
	member := storagetest.StartEmbedded(t)
	s := &storm{t: t, client: member.Client()}
	for i := range s.servers {
		s.servers[i] = storagetest.NewStores(t, storage.NewOptions(), storagetest.NewConfig(member))
	}
	return s
}

// run creates and removes every Namespace the given number of times.
func (s *storm) run(rounds int, look bool) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var creating, living sync.WaitGroup
	progress := map[string]chan struct{}{}
	for _, namespace := range stormNamespaces {
		progress[namespace] = make(chan struct{}, 1)
	}
	for _, server := range s.servers {
		for range creators {
			creating.Go(func() { s.create(ctx, server, progress, look) })
		}
	}
	for _, namespace := range stormNamespaces {
		living.Go(func() {
			for range rounds {
				if err := s.live(genericrequest.WithNamespace(ctx, metav1.NamespaceNone), namespace, progress[namespace]); err != nil {
					s.t.Errorf("namespace %s: %v", namespace, err)
					return
				}
			}
		})
	}
	living.Wait()
	cancel()
	creating.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// create creates content until the context ends.
func (s *storm) create(ctx context.Context, server storagetest.Stores, progress map[string]chan struct{}, look bool) {
	for i := 0; ctx.Err() == nil; i++ {
		namespace := stormNamespaces[rand.IntN(len(stormNamespaces))]
		if look && !s.seemsActive(ctx, server, namespace) {
			continue
		}
		err := s.createOne(genericrequest.WithNamespace(ctx, namespace), server, namespace, i)
		_, terminating := apierrors.StatusCause(err, corev1.NamespaceTerminatingCause)
		switch {
		case err == nil:
			s.created.Add(1)
			select {
			case progress[namespace] <- struct{}{}:
			default:
			}
		case terminating, apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
			s.denied.Add(1)
		case ctx.Err() == nil:
			s.t.Errorf("creating in %s: %v", namespace, err)
			return
		}
	}
}

// createOne creates an object on one of the possible paths.
func (s *storm) createOne(ctx context.Context, server storagetest.Stores, namespace string, i int) error {
	name := fmt.Sprintf("p%d", rand.IntN(50))
	switch i % 3 {
	case 0:
		_, err := server.Pods.Create(ctx, &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "g-"}},
			rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		return err
	case 1:
		_, err := server.LimitRanges.Create(ctx, &tenancy.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
			rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		return err
	default: // PUT as create
		pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		_, _, err := server.Pods.Update(ctx, name, rest.DefaultUpdatedObjectInfo(pod),
			rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
		return err
	}
}

func (s *storm) seemsActive(ctx context.Context, server storagetest.Stores, namespace string) bool {
	obj, err := server.Namespaces.Get(ctx, namespace, &metav1.GetOptions{ResourceVersion: "0"})
	return err == nil && obj.(*tenancy.Namespace).DeletionTimestamp.IsZero()
}

// live takes a Namespace from its creation to its removal.
func (s *storm) live(ctx context.Context, name string, progress <-chan struct{}) error {
	server := s.servers[rand.IntN(2)]
	_, err := server.Namespaces.Create(ctx, &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating: %w", err)
	}
	for i := range 5 {
		<-progress
		if err := update(ctx, s.servers[i%2].Namespaces, name, func(ns *tenancy.Namespace) {
			ns.Labels = map[string]string{"changed": fmt.Sprint(i)}
		}); err != nil {
			return fmt.Errorf("relabelling: %w", err)
		}
	}
	if err := update(ctx, server.Namespaces, name, func(ns *tenancy.Namespace) {
		ns.DeletionTimestamp = new(metav1.Now())
		ns.Status.Phase = tenancy.NamespaceTerminating
	}); err != nil {
		return fmt.Errorf("terminating: %w", err)
	}
	for {
		// The first try may find content, and is then rejected.
		_, _, err := server.Namespaces.Delete(ctx, name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		if err == nil {
			return nil
		}
		if _, left := apierrors.StatusCause(err, v1.NamespaceNotEmptyCause); !left {
			return fmt.Errorf("deleting: %w", err)
		}
		for _, store := range []*genericregistry.Store{server.Pods, server.LimitRanges} {
			_, err := store.DeleteCollection(genericrequest.WithNamespace(ctx, name), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &metainternal.ListOptions{})
			if err != nil {
				return fmt.Errorf("purging: %w", err)
			}
		}
	}
}

// update changes a Namespace below the rules for updates, as its own DELETE does.
func update(ctx context.Context, store *genericregistry.Store, name string, change func(*tenancy.Namespace)) error {
	key, err := store.KeyFunc(ctx, name)
	if err != nil {
		return err
	}
	return store.Storage.GuaranteedUpdate(ctx, key, &tenancy.Namespace{}, false, nil, apistorage.SimpleUpdate(func(old runtime.Object) (runtime.Object, error) {
		change(old.(*tenancy.Namespace))
		return old, nil
	}), false, nil)
}

// violations reads everything that ever happened from etcd and returns each
// object that was created without an active Namespace, and each that was left in
// a Namespace when that was removed.
func (s *storm) violations() []string {
	current, err := s.client.Get(s.t.Context(), "/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	r := replay{t: s.t, deleting: map[string]bool{}, content: map[string]map[string]bool{}}
	for response := range s.client.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithProgressNotify(), clientv3.WithPrevKV()) {
		if err := response.Err(); err != nil {
			s.t.Fatal(err)
		}
		for _, event := range response.Events {
			r.apply(event)
			if event.Kv.ModRevision == current.Header.Revision {
				return r.violations
			}
		}
	}
	s.t.Fatal("the watch ended")
	return nil
}

// replay is the state of the keys at a revision.
type replay struct {
	t *testing.T
	// deleting holds the Namespaces that exist, and whether they are being
	// deleted; content holds the keys in them, whether they exist or not.
	deleting   map[string]bool
	content    map[string]map[string]bool
	violations []string
}

func (r *replay) apply(event *clientv3.Event) {
	key := string(event.Kv.Key)
	if name, ok := strings.CutPrefix(key, namespacesPrefix); ok {
		if event.Type == clientv3.EventTypeDelete {
			for left := range r.content[name] {
				r.violations = append(r.violations, fmt.Sprintf("%d: %s is left in a removed namespace", event.Kv.ModRevision, left))
			}
			delete(r.deleting, name)
			delete(r.content, name) // an orphan counts once
			return
		}
		obj, err := runtime.Decode(codec, event.Kv.Value)
		if err != nil {
			r.t.Fatal(err)
		}
		r.deleting[name] = !obj.(*tenancy.Namespace).DeletionTimestamp.IsZero()
		return
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(key, "/registry/tenancy.borough.io/"), "/")
	namespace, _, ok := strings.Cut(path, "/")
	if !ok {
		r.t.Fatalf("unknown key %s", key)
	}
	if event.Type == clientv3.EventTypeDelete {
		delete(r.content[namespace], key)
		return
	}
	if deleting, exists := r.deleting[namespace]; event.IsCreate() && (!exists || deleting) {
		r.violations = append(r.violations, fmt.Sprintf("%d: %s is created in a namespace that exists: %t, is being deleted: %t",
			event.Kv.ModRevision, key, exists, deleting))
	}
	if r.content[namespace] == nil {
		r.content[namespace] = map[string]bool{}
	}
	r.content[namespace][key] = true
}
