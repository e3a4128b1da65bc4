// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/apiserver"
	"github.com/borough-io/borough/pkg/authorization/rbac"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
	"github.com/borough-io/borough/pkg/storage/changes"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/pkg/storage/stored"
	"github.com/borough-io/borough/pkg/visibility"
)

// fixture is an etcd with views that follow it.
type fixture struct {
	client *clientv3.Client
	codec  runtime.Codec
	index  *rbac.Index
	views  *visibility.Views
	// keyIsMissing is whether values that contain "hidden" cannot be decrypted.
	keyIsMissing atomic.Bool
	// decodes decides whether the views have a Namespace that is written decoded, too,
	// before or after the feed has it. Without it they have none.
	decodes func() bool
}

// decryptor decrypts values, which are not encrypted, of the fixture.
type decryptor struct {
	value.Transformer
	*fixture
}

func (d decryptor) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	if d.keyIsMissing.Load() && bytes.Contains(data, []byte("hidden")) {
		return nil, false, errors.New("the key is missing")
	}
	return d.Transformer.TransformFromStorage(ctx, data, dataCtx)
}

func newFixture(t testing.TB) *fixture {
	codecs := serializer.NewCodecFactory(apiserver.NewScheme())
	f := &fixture{
		client: storagetest.StartEmbedded(t).Client(),
		codec:  codecs.LegacyCodec(v1.SchemeGroupVersion, rbacv1.SchemeGroupVersion),
		index:  rbac.NewIndex(nil),
	}
	f.views = visibility.New(f.index)
	source := changes.Source{
		Connect:  func() (*clientv3.Client, func(), error) { return f.client, func() {}, nil },
		BeginKey: "/registry/begin",
	}
	for _, gr := range visibility.Resources() {
		source.Resources = append(source.Resources, stored.Resource{
			GroupResource: gr, Prefix: prefixOf(gr), Codec: f.codec, Transformer: decryptor{identity.NewEncryptCheckTransformer(), f},
		})
	}
	f.views.Feed().SetSource(source)
	return f
}

// run lets the views follow etcd until the test ends.
func (f *fixture) run(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.views.Feed().Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	if err := f.views.Feed().Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
}

// await waits until the views have reached a revision. A list waits for three seconds at most.
func (f *fixture) await(t *testing.T, revision int64) {
	t.Helper()
	if err := f.views.Feed().Await(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
}

func prefixOf(gr schema.GroupResource) string {
	return "/registry/" + gr.Group + "/" + gr.Resource + "/"
}

// keyOf returns the key of an object.
func keyOf(obj metav1.Object) string {
	switch obj.(type) {
	case *v1.Namespace:
		return prefixOf(tenancy.Resource("namespaces")) + obj.GetName()
	case *rbacv1.ClusterRole:
		return prefixOf(rbacv1.Resource("clusterroles")) + obj.GetName()
	case *rbacv1.ClusterRoleBinding:
		return prefixOf(rbacv1.Resource("clusterrolebindings")) + obj.GetName()
	case *rbacv1.Role:
		return prefixOf(rbacv1.Resource("roles")) + obj.GetNamespace() + "/" + obj.GetName()
	}
	return prefixOf(rbacv1.Resource("rolebindings")) + obj.GetNamespace() + "/" + obj.GetName()
}

// write puts and deletes objects in one transaction, and returns its revision.
func (f *fixture) write(t testing.TB, put, deleted []metav1.Object) int64 {
	t.Helper()
	var operations []clientv3.Op
	for _, obj := range put {
		data, err := runtime.Encode(f.codec, obj.(runtime.Object))
		if err != nil {
			t.Fatal(err)
		}
		operations = append(operations, clientv3.OpPut(keyOf(obj), string(data)))
	}
	for _, obj := range deleted {
		operations = append(operations, clientv3.OpDelete(keyOf(obj)))
	}
	response, err := f.client.Txn(t.Context()).Then(operations...).Commit()
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range put {
		if _, ok := obj.(*v1.Namespace); ok && f.decodes != nil && f.decodes() {
			f.decoded(t, obj, response.Header.Revision)
		}
	}
	return response.Header.Revision
}

// decoded lets the views have a Namespace that was written at a revision, and returns it.
func (f *fixture) decoded(t testing.TB, obj metav1.Object, revision int64) *tenancy.Namespace {
	t.Helper()
	data, err := runtime.Encode(f.codec, obj.(runtime.Object))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := runtime.Decode(f.codec, data)
	if err != nil {
		t.Fatal(err)
	}
	ns := decoded.(*tenancy.Namespace)
	ns.ResourceVersion = fmt.Sprint(revision)
	f.views.Decoded(ns)
	return ns
}

func (f *fixture) put(t testing.TB, objects ...metav1.Object) int64 {
	t.Helper()
	return f.write(t, objects, nil)
}

func newNamespace(name string, tier ...string) *v1.Namespace {
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, value := range tier {
		ns.Labels["tier"] = value
	}
	return ns
}

// newRole returns a ClusterRole with a rule for Namespaces.
func newRole(name string, verbs []string, names ...string) *rbacv1.ClusterRole {
	rule := rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{tenancy.GroupName}, Resources: []string{"namespaces"}, ResourceNames: names}
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}
}

// bind binds a ClusterRole to users in a Namespace or, without one, in the cluster.
func bind(namespace, name, role string, users ...string) metav1.Object {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	var subjects []rbacv1.Subject
	for _, u := range users {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.UserKind, Name: u})
	}
	if namespace == "" {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: ref, Subjects: subjects}
	}
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, RoleRef: ref, Subjects: subjects}
}

func (f *fixture) of(name string, groups ...string) *visibility.View {
	return f.views.Of(&user.DefaultInfo{Name: name, Groups: groups})
}

func everything() storage.SelectionPredicate {
	return namespace.Match(labels.Everything(), fields.Everything())
}

// list returns the names that a user sees, and the list.
func list(t testing.TB, view *visibility.View, options metainternalversion.ListOptions) ([]string, *tenancy.NamespaceList) {
	t.Helper()
	list, err := view.List(t.Context(), &options, everything())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, list
}

func wantNames(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// next returns the next event of a watch.
func next(t testing.TB, events <-chan watchEvent) watchEvent {
	t.Helper()
	select {
	case event, ok := <-events:
		if !ok {
			t.Fatal("the watch has ended")
		}
		return event
	case <-time.After(time.Minute):
		t.Fatal("the watch has no event for a minute")
	}
	return watchEvent{}
}

// watchEvent is what matters of an event.
type watchEvent struct {
	kind, name, version, tier string
	initialEnd                bool
}

// watch starts a watch, and returns its events.
func watch(ctx context.Context, t testing.TB, view *visibility.View, options metainternalversion.ListOptions, predicate storage.SelectionPredicate) <-chan watchEvent {
	t.Helper()
	options.Watch = true
	w, err := view.Watch(ctx, &options, predicate)
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan watchEvent)
	go func() {
		defer close(events)
		defer w.Stop()
		for e := range w.ResultChan() {
			event := watchEvent{kind: string(e.Type)}
			if object, err := meta.Accessor(e.Object); err == nil {
				event.name, event.version, event.tier = object.GetName(), object.GetResourceVersion(), object.GetLabels()["tier"]
				event.initialEnd = object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
			} else if status, ok := e.Object.(*metav1.Status); ok {
				event.name = string(status.Reason)
			}
			select {
			case events <- event:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events
}

// watchError returns the error that is the only event of a watch.
func watchError(ctx context.Context, t testing.TB, of interface {
	Watch(context.Context, *metainternalversion.ListOptions, storage.SelectionPredicate) (apiwatch.Interface, error)
}, options metainternalversion.ListOptions) error {
	t.Helper()
	options.Watch = true
	w, err := of.Watch(ctx, &options, everything())
	if err != nil {
		t.Fatalf("the watch fails without an event: %v", err)
	}
	defer w.Stop()
	var events []apiwatch.Event
	for {
		select {
		case event, ok := <-w.ResultChan():
			if ok {
				events = append(events, event)
				continue
			}
		case <-time.After(time.Minute):
			t.Fatalf("the watch does not end after %v", events)
		}
		if len(events) != 1 || events[0].Type != apiwatch.Error {
			t.Fatalf("got %v, want one error", events)
		}
		return apierrors.FromObject(events[0].Object)
	}
}

func objects(list ...metav1.Object) []metav1.Object { return list }
