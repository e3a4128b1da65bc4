// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

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
		list.RemainingItemCount = new(int64(len(all) - end))
	}
	for _, o := range all[min(start, end):end] {
		list.Items = append(list.Items, *o.DeepCopy())
	}
	return list, nil
}

// ofPolicy reports whether a finalizer is one that a deletion in the background removes.
func ofPolicy(finalizer string) bool {
	return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents
}

// mark deletes an object, or marks it if it is held. The lock is held.
func (s *server) mark(gvr schema.GroupVersionResource, o *partial) {
	o.Finalizers = slices.DeleteFunc(o.Finalizers, ofPolicy)
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
