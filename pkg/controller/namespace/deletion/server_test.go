// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
)

var (
	pods        = v1.SchemeGroupVersion.WithResource("pods")
	limitRanges = v1.SchemeGroupVersion.WithResource("limitranges")
	// events are purged together with limitRanges, but not discovered.
	events   = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	corePods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	things   = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}
	testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

type partial = metav1.PartialObjectMetadata

// graceful is an annotation of objects that stay until someone confirms their
// deletion, as Pods on a node do.
const graceful = "graceful"

// server keeps Namespaces and their content in memory and behaves as the API
// server does, as far as the Deleter can see. Tests can make it fail, or change
// what it holds between two requests.
type server struct {
	t testing.TB

	mu         sync.Mutex
	version    int
	namespaces map[string]*v1.Namespace
	content    map[schema.GroupVersionResource][]*partial
	requests   []string

	// resources is what discovery shows.
	discovered Discovered
	// before is called before a request is served, without the lock; an error
	// is the answer. What names the object or is empty.
	before func(verb, resource, what string) error
	// wrote is called after a status was written, with the lock.
	wrote func(*v1.Namespace)
	// clock is what the Deleter reads.
	clock *clocktesting.FakePassiveClock
	// counted is how many objects were reported as purged.
	counted int
	// older means that the server does not know spec.finalize of a purge.
	older bool
}

func newServer(t testing.TB) *server {
	return &server{
		t:          t,
		namespaces: map[string]*v1.Namespace{},
		content:    map[schema.GroupVersionResource][]*partial{},
		clock:      clocktesting.NewFakePassiveClock(testTime),
		discovered: Discovered{Resources: []Resource{
			{GroupVersionResource: limitRanges, Delete: true, DeleteCollection: true, Watch: true},
			{GroupVersionResource: pods, Delete: true, DeleteCollection: true, Watch: true},
		}},
	}
}

// discoverForeign adds resources of other groups to discovery.
func (s *server) discoverForeign() {
	for _, gvr := range []schema.GroupVersionResource{corePods, things} {
		s.discovered.Resources = append(s.discovered.Resources, Resource{GroupVersionResource: gvr, Delete: true, DeleteCollection: true, Watch: true})
	}
}

func (s *server) deleter() *Deleter {
	discover := func(context.Context, time.Time) Discovered { return s.discovered }
	purged := func(_ schema.GroupVersionResource, n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.counted += n
	}
	return newDeleter(&client{s}, &contentClient{s: s}, discover, purged, s.clock)
}

// terminating adds a Namespace "ns" that is being deleted, and returns it.
func (s *server) terminating(modify ...func(*v1.Namespace)) *v1.Namespace {
	ns := &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "uid-1", Labels: map[string]string{"l": "v"}, DeletionTimestamp: ptr.To(metav1.NewTime(testTime))},
		Spec:       v1.NamespaceSpec{Finalizers: []v1.FinalizerName{v1.FinalizerKubernetes}},
		Status:     v1.NamespaceStatus{Phase: v1.NamespaceTerminating},
	}
	for _, f := range modify {
		f(ns)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(ns)
	return ns.DeepCopy()
}

func (s *server) store(ns *v1.Namespace) {
	s.version++
	ns.ResourceVersion = strconv.Itoa(s.version)
	s.namespaces[ns.Name] = ns.DeepCopy()
}

// add adds objects to a Namespace.
func (s *server) add(gvr schema.GroupVersionResource, objects ...*partial) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		s.version++
		o.Namespace, o.UID = "ns", types.UID(fmt.Sprintf("%s-%s-%d", gvr.Resource, o.Name, s.version))
		s.content[gvr] = append(s.content[gvr], o)
	}
}

func object(name string, modify ...func(*partial)) *partial {
	o := &partial{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, f := range modify {
		f(o)
	}
	return o
}

func finalizers(names ...string) func(*partial) {
	return func(o *partial) { o.Finalizers = names }
}

func waits(o *partial) { o.Annotations = map[string]string{graceful: ""} }

func deleted(o *partial) {
	o.DeletionTimestamp = ptr.To(metav1.NewTime(testTime))
}

// names returns what is left of a kind.
func (s *server) names(gvr schema.GroupVersionResource) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, o := range s.content[gvr] {
		names = append(names, o.Name)
	}
	return names
}

func (s *server) get(name string) *v1.Namespace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.namespaces[name].DeepCopy()
}

func (s *server) serve(verb, resource, what string) error {
	if s.before != nil {
		if err := s.before(verb, resource, what); err != nil {
			return err
		}
	}
	s.mu.Lock()
	request := verb + " " + resource
	if what != "" {
		request += " " + what
	}
	s.requests = append(s.requests, request)
	return nil
}

// remove takes a Namespace from storage if nothing holds it.
func (s *server) remove(ns *v1.Namespace) error {
	for gvr, objects := range s.content {
		if len(objects) > 0 {
			err := apierrors.NewConflict(v1.Resource("namespaces"), ns.Name, fmt.Errorf("%s are left", gvr.Resource))
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1.NamespaceNotEmptyCause}}
			return err
		}
	}
	delete(s.namespaces, ns.Name)
	return nil
}

// client is a Client.
type client struct{ s *server }

func (c *client) Namespaces() tenancyv1.NamespaceInterface { return &namespaceClient{s: c.s} }

func (c *client) NamespacePurges(namespace string) tenancyv1.NamespacePurgeInterface {
	if namespace != "ns" {
		c.s.t.Errorf("a purge of namespace %q", namespace)
	}
	return &purgeClient{s: c.s}
}

// purgeClient purges as our server does.
type purgeClient struct {
	tenancyv1.NamespacePurgeInterface
	s *server
}

func (c *purgeClient) Create(_ context.Context, purge *v1.NamespacePurge, opts metav1.CreateOptions) (*v1.NamespacePurge, error) {
	if purge.Spec.Force || opts.FieldValidation != metav1.FieldValidationStrict {
		c.s.t.Errorf("a purge %+v with options %+v", purge, opts)
	}
	if err := c.s.serve("create", "namespacepurges", ""); err != nil {
		return nil, err
	}
	defer c.s.mu.Unlock()
	if purge.Spec.Finalize && c.s.older {
		return nil, apierrors.NewBadRequest(`strict decoding error: unknown field "spec.finalize"`)
	}
	ns := c.s.namespaces["ns"]
	if ns == nil {
		return nil, apierrors.NewNotFound(v1.Resource("namespaces"), "ns")
	}
	if ns.UID != purge.Spec.NamespaceUID || ns.DeletionTimestamp == nil {
		return nil, apierrors.NewConflict(v1.Resource("namespaces"), "ns", fmt.Errorf("not the namespace %s", purge.Spec.NamespaceUID))
	}
	purge = purge.DeepCopy()
	for _, gvr := range []schema.GroupVersionResource{pods, limitRanges, events} {
		before := len(c.s.content[gvr])
		for _, o := range slices.Clone(c.s.content[gvr]) {
			c.s.mark(gvr, o)
		}
		held := len(c.s.content[gvr])
		purge.Status.Purged = append(purge.Status.Purged, v1.PurgedResource{
			Group: gvr.Group, Resource: gvr.Resource, Removed: int64(before - held), Held: int64(held),
		})
		if held > 0 && gvr == pods {
			break
		}
	}
	if purge.Spec.Finalize && slices.Equal(ns.Spec.Finalizers, []v1.FinalizerName{v1.FinalizerKubernetes}) && len(ns.Finalizers) == 0 {
		purge.Status.Finalized = c.s.remove(ns) == nil
	}
	return purge, nil
}

// namespaceClient has the methods that a Deleter calls.
type namespaceClient struct {
	tenancyv1.NamespaceInterface
	s *server
}

func (c *namespaceClient) lookup(name string) (*v1.Namespace, error) {
	ns := c.s.namespaces[name]
	if ns == nil {
		return nil, apierrors.NewNotFound(v1.Resource("namespaces"), name)
	}
	return ns.DeepCopy(), nil
}

func (c *namespaceClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1.Namespace, error) {
	if err := c.s.serve("get", "namespaces", ""); err != nil {
		return nil, err
	}
	defer c.s.mu.Unlock()
	return c.lookup(name)
}

func (c *namespaceClient) update(subresource string, in *v1.Namespace, apply func(stored *v1.Namespace)) (*v1.Namespace, error) {
	if err := c.s.serve("update", "namespaces/"+subresource, ""); err != nil {
		return nil, err
	}
	defer c.s.mu.Unlock()
	stored, err := c.lookup(in.Name)
	if err != nil {
		return nil, err
	}
	if in.UID != stored.UID || in.ResourceVersion != stored.ResourceVersion {
		return nil, apierrors.NewConflict(v1.Resource("namespaces"), in.Name, fmt.Errorf("changed"))
	}
	apply(stored)
	if len(stored.Spec.Finalizers) == 0 && len(stored.Finalizers) == 0 {
		return stored, c.s.remove(stored)
	}
	c.s.store(stored)
	return c.s.namespaces[in.Name].DeepCopy(), nil
}

func (c *namespaceClient) UpdateStatus(_ context.Context, ns *v1.Namespace, _ metav1.UpdateOptions) (*v1.Namespace, error) {
	return c.update("status", ns, func(stored *v1.Namespace) {
		stored.Status = ns.Status
		if c.s.wrote != nil {
			c.s.wrote(stored)
		}
	})
}

func (c *namespaceClient) Finalize(_ context.Context, name string, ns *v1.Namespace, _ metav1.UpdateOptions) (*v1.Namespace, error) {
	if name != ns.Name {
		c.s.t.Errorf("finalize of %q with a body for %q", name, ns.Name)
	}
	return c.update("finalize", ns, func(stored *v1.Namespace) {
		stored.ObjectMeta = ns.ObjectMeta
		stored.Spec = ns.Spec
	})
}

func (c *namespaceClient) Delete(_ context.Context, name string, opts metav1.DeleteOptions) error {
	if err := c.s.serve("delete", "namespaces", ""); err != nil {
		return err
	}
	defer c.s.mu.Unlock()
	ns, err := c.lookup(name)
	if err != nil {
		return err
	}
	if opts.Preconditions == nil || opts.Preconditions.UID == nil {
		c.s.t.Error("a namespace is deleted without a UID")
	} else if *opts.Preconditions.UID != ns.UID {
		return apierrors.NewConflict(v1.Resource("namespaces"), name, fmt.Errorf("another UID"))
	}
	if len(ns.Spec.Finalizers) > 0 || len(ns.Finalizers) > 0 {
		return nil
	}
	return c.s.remove(ns)
}

// contentClient has the methods of a metadata client that a Deleter calls.
type contentClient struct {
	metadata.Interface
	metadata.Getter
	s   *server
	gvr schema.GroupVersionResource
}

func (c *contentClient) Resource(gvr schema.GroupVersionResource) metadata.Getter {
	return &contentClient{s: c.s, gvr: gvr}
}

func (c *contentClient) Namespace(name string) metadata.ResourceInterface {
	if name != "ns" {
		c.s.t.Errorf("content of namespace %q is asked for", name)
	}
	return &contentOf{s: c.s, gvr: c.gvr}
}

type contentOf struct {
	metadata.ResourceInterface
	s   *server
	gvr schema.GroupVersionResource
}

func (c *contentOf) List(_ context.Context, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if err := c.s.serve("list", c.gvr.Resource, opts.Continue); err != nil {
		return nil, err
	}
	defer c.s.mu.Unlock()
	all := c.s.content[c.gvr]
	start, _ := strconv.Atoi(opts.Continue)
	end := len(all)
	list := &metav1.PartialObjectMetadataList{}
	list.ResourceVersion = strconv.Itoa(c.s.version)
	if opts.Limit > 0 && start+int(opts.Limit) < end {
		end = start + int(opts.Limit)
		list.Continue = strconv.Itoa(end)
		list.RemainingItemCount = ptr.To(int64(len(all) - end))
	}
	for _, o := range all[min(start, end):end] {
		list.Items = append(list.Items, *o.DeepCopy())
	}
	return list, nil
}

// mark deletes an object, or marks it if it is held. The lock is held.
func (s *server) mark(gvr schema.GroupVersionResource, o *partial) {
	o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	_, waits := o.Annotations[graceful]
	if len(o.Finalizers) > 0 || waits {
		if o.DeletionTimestamp == nil {
			deleted(o)
		}
		return
	}
	s.content[gvr] = slices.DeleteFunc(s.content[gvr], func(other *partial) bool { return other == o })
}

// wantBackground fails the test unless an object is deleted with background
// propagation, which removes the finalizers of the other policies.
func (c *contentOf) wantBackground(opts metav1.DeleteOptions) {
	if opts.PropagationPolicy == nil || *opts.PropagationPolicy != metav1.DeletePropagationBackground {
		c.s.t.Errorf("%s are deleted without background propagation", c.gvr.Resource)
	}
}

func (c *contentOf) Delete(_ context.Context, name string, opts metav1.DeleteOptions, _ ...string) error {
	if err := c.s.serve("delete", c.gvr.Resource, name); err != nil {
		return err
	}
	defer c.s.mu.Unlock()
	for _, o := range c.s.content[c.gvr] {
		if o.Name != name {
			continue
		}
		if opts.Preconditions == nil || opts.Preconditions.UID == nil {
			c.s.t.Errorf("%s %s is deleted without a UID", c.gvr.Resource, name)
		} else if *opts.Preconditions.UID != o.UID {
			return apierrors.NewConflict(c.gvr.GroupResource(), name, fmt.Errorf("another UID"))
		}
		c.wantBackground(opts)
		c.s.mark(c.gvr, o)
		return nil
	}
	return apierrors.NewNotFound(c.gvr.GroupResource(), name)
}

// DeleteCollection is that of another group: it is not bound to a Namespace.
func (c *contentOf) DeleteCollection(_ context.Context, opts metav1.DeleteOptions, _ metav1.ListOptions) error {
	if c.gvr.Group == v1.GroupName {
		c.s.t.Errorf("a deletecollection of our own %s", c.gvr.Resource)
	}
	c.wantBackground(opts)
	if err := c.s.serve("deletecollection", c.gvr.Resource, ""); err != nil {
		return err
	}
	defer c.s.mu.Unlock()
	for _, o := range slices.Clone(c.s.content[c.gvr]) {
		c.s.mark(c.gvr, o)
	}
	return nil
}

func forbidden(resource schema.GroupVersionResource) error {
	return apierrors.NewForbidden(resource.GroupResource(), "", fmt.Errorf("no"))
}

func unavailable() error {
	return apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "", schema.GroupResource{}, "", "try later", 0, true)
}
