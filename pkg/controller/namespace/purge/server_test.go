// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

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
	clocktesting "k8s.io/utils/clock/testing"

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

// addForeign adds content that a purge does not delete, so that it does not finalize.
func (s *server) addForeign() {
	s.discoverForeign()
	s.add(things, object("x"))
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
		ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "uid-1", Labels: map[string]string{"l": "v"}, DeletionTimestamp: new(metav1.NewTime(testTime))},
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

func waits(o *partial) {
	o.Annotations, o.DeletionGracePeriodSeconds = map[string]string{graceful: ""}, new(int64(30))
}

func deleted(o *partial) {
	o.DeletionTimestamp = new(metav1.NewTime(testTime))
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

// remove takes a Namespace from storage if it has no content on this server. Content of
// other groups is on other servers, so the Deleter must have seen that it is gone.
func (s *server) remove(ns *v1.Namespace) error {
	for gvr, objects := range s.content {
		switch {
		case len(objects) == 0:
		case gvr == corePods || gvr == things:
			s.t.Errorf("the namespace is removed with %d %s of other servers left", len(objects), gvr.GroupResource())
		default:
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
	// With content it is written, as TestFinalizeLeavesNoOrphans shows.
	if len(stored.Spec.Finalizers) == 0 && len(stored.Finalizers) == 0 && c.s.remove(stored) == nil {
		return stored, nil
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
	} else if version := opts.Preconditions.ResourceVersion; version != nil && *version != ns.ResourceVersion {
		return apierrors.NewConflict(v1.Resource("namespaces"), name, fmt.Errorf("changed"))
	}
	if len(ns.Spec.Finalizers) > 0 {
		return nil
	}
	ns.Finalizers = slices.DeleteFunc(ns.Finalizers, ofPolicy)
	if len(ns.Finalizers) > 0 {
		c.s.store(ns)
		return nil
	}
	return c.s.remove(ns)
}

// contentClient has the methods of a metadata client that a Deleter calls.

func forbidden(resource schema.GroupVersionResource) error {
	return apierrors.NewForbidden(resource.GroupResource(), "", fmt.Errorf("no"))
}

func unavailable() error {
	return apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "", schema.GroupResource{}, "", "try later", 0, true)
}

// unread returns the error of a purge of a Namespace with objects that cannot be read.
func unread(resource schema.GroupVersionResource) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError,
		Details: &metav1.StatusDetails{Group: resource.Group, Kind: resource.Resource},
		Message: resource.GroupResource().String() + " cannot be read",
	}}
}
