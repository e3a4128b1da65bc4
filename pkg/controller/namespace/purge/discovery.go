// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// AllGroups means all API groups of the server, as one of the groups of
// NewDiscoverer.
const AllGroups = "*"

// Resource is a resource that can be content: it is namespaced, and its objects
// can be listed and deleted.
type Resource struct {
	schema.GroupVersionResource
	// Delete, DeleteCollection and Watch are whether the server has the verb. At
	// least one of the first two is true.
	Delete, DeleteCollection, Watch bool
}

// Discovered is the result of discovery.
type Discovered struct {
	// Resources are the resources to delete, as far as they could be discovered.
	Resources []Resource
	// Failure names the groups that could not be discovered. They may have
	// content, so a Namespace must not be finalized while Failure is set.
	Failure error
	// ParseFailure names the group versions that could not be parsed. The same
	// applies to them.
	ParseFailure error
	// Standalone is whether the server has more content, which only a purge shows: Roles,
	// RoleBindings, Events and Leases.
	Standalone bool
}

// Discoverer discovers the resources that are content. It caches them for as long
// as that cannot hide a resource from a pass.
type Discoverer struct {
	client discovery.DiscoveryInterfaceWithContext
	groups sets.Set[string]

	// last is what the last request returned that did not fail, or nil.
	last atomic.Pointer[answer]
	// requests has the request that is under way.
	requests singleflight.Group
}

// answer is what a request returned.
type answer struct {
	Discovered
	started time.Time // when the request was sent
}

// NewDiscoverer returns a Discoverer for the resources of the given API groups,
// which may include AllGroups.
func NewDiscoverer(client discovery.DiscoveryInterfaceWithContext, groups ...string) *Discoverer {
	return &Discoverer{client: client, groups: sets.New(groups...)}
}

// Discover returns what discovery shows at a moment after since. No content is
// created in a Namespace that was Terminating by then, so it has none of a
// resource that appears later: Namespaces that are deleted together share one
// request. A failure is not cached. A pass waits only for a request that it needs, and
// only until its context ends. The request itself then continues for other passes, until
// the timeout of the client at the latest.
func (d *Discoverer) Discover(ctx context.Context, since time.Time) Discovered {
	lastAfter := func() *answer {
		if last := d.last.Load(); last != nil && last.started.After(since) {
			return last
		}
		return nil
	}
	for {
		if last := lastAfter(); last != nil {
			return last.Discovered
		}
		mine := false
		sent := d.requests.DoChan("", func() (any, error) {
			// A request may have ended since.
			if last := lastAfter(); last != nil {
				return last, nil
			}
			mine = true
			return d.request(context.WithoutCancel(ctx)), nil
		})
		select {
		case result := <-sent:
			if got := result.Val.(*answer); mine || got.started.After(since) {
				return got.Discovered
			}
		case <-ctx.Done():
			return Discovered{Failure: fmt.Errorf("wait for discovery: %w", context.Cause(ctx))}
		}
	}
}

// request sends a request, and caches its result unless it failed.
func (d *Discoverer) request(ctx context.Context) *answer {
	started := time.Now()
	got := &answer{d.discover(ctx), started}
	if got.Failure == nil && got.ParseFailure == nil {
		d.last.Store(got)
	}
	return got
}

func (d *Discoverer) discover(ctx context.Context) (found Discovered) {
	var lists []*metav1.APIResourceList
	if own := v1.SchemeGroupVersion; d.groups.Equal(sets.New(own.Group)) {
		list, err := d.client.ServerResourcesForGroupVersionWithContext(ctx, own.String())
		if err != nil {
			found.Failure = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{own: err}}
		} else {
			lists = append(lists, list)
			// In a cluster, the group does not have this resource.
			found.Standalone = slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "namespacerequests" })
		}
	} else {
		var err error
		lists, err = d.client.ServerPreferredNamespacedResourcesWithContext(ctx)
		found.Failure = d.failureOfGroups(err)
		if found.Failure == nil && d.wants(own.Group) && !servesGroup(lists, own.Group) {
			// There is a Namespace, so its group is served: the aggregator has not
			// caught up.
			found.Failure = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{own: errors.New("not served")}}
		}
	}

	var unparsed []error
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			unparsed = append(unparsed, fmt.Errorf("parse group version %q: %w", list.GroupVersion, err))
			continue
		}
		if !d.wants(gv.Group) {
			continue
		}
		for _, r := range list.APIResources {
			if resource, ok := purgeable(gv, r); ok {
				found.Resources = append(found.Resources, resource)
			}
		}
	}
	slices.SortFunc(found.Resources, func(a, b Resource) int { return strings.Compare(a.String(), b.String()) })
	found.ParseFailure = errors.Join(unparsed...)
	return found
}

func (d *Discoverer) wants(group string) bool {
	return d.groups.Has(AllGroups) || d.groups.Has(group)
}

// failureOfGroups removes the groups that are not to be purged from an error.
func (d *Discoverer) failureOfGroups(err error) error {
	failed, ok := discovery.GroupDiscoveryFailedErrorGroups(err)
	if !ok {
		return err
	}
	wanted := map[schema.GroupVersion]error{}
	for gv, err := range failed {
		if d.wants(gv.Group) {
			wanted[gv] = err
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return &discovery.ErrGroupDiscoveryFailed{Groups: wanted}
}

func servesGroup(lists []*metav1.APIResourceList, group string) bool {
	return slices.ContainsFunc(lists, func(list *metav1.APIResourceList) bool {
		return strings.HasPrefix(list.GroupVersion, group+"/")
	})
}

// purgeable reports whether a resource can be content, and how it can be deleted.
// Subresources and resources that cannot be listed are not content.
func purgeable(gv schema.GroupVersion, r metav1.APIResource) (Resource, bool) {
	has := func(verb string) bool { return slices.Contains(r.Verbs, verb) }
	resource := Resource{
		GroupVersionResource: gv.WithResource(r.Name),
		Delete:               has("delete"),
		DeleteCollection:     has("deletecollection"),
		Watch:                has("watch"),
	}
	ok := r.Namespaced && !strings.Contains(r.Name, "/") && has("list") &&
		(resource.Delete || resource.DeleteCollection)
	return resource, ok
}
