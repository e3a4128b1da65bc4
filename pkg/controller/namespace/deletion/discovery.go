// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// AllGroups stands for every API group that the server has, where it is among
// the groups given to NewDiscoverer.
const AllGroups = "*"

// Resource is a kind of content that can be purged: it is namespaced, and can
// be listed and deleted.
type Resource struct {
	schema.GroupVersionResource
	// Delete, DeleteCollection and Watch tell whether the server has the verb.
	// At least one of the first two is true.
	Delete, DeleteCollection, Watch bool
}

// Discovered is what one look at the server's discovery showed.
type Discovered struct {
	// Resources are the kinds to purge, as far as they could be discovered.
	Resources []Resource
	// Failure tells which groups could not be discovered. Content of theirs may
	// be left unseen, so a Namespace must not go while it is set.
	Failure error
	// ParseFailure tells which group versions could not be parsed; the same
	// holds for them.
	ParseFailure error
}

// Discoverer finds the kinds to purge and remembers them for as long as that
// cannot hide a kind from a purge.
type Discoverer struct {
	client discovery.DiscoveryInterfaceWithContext
	groups sets.Set[string]

	mu      sync.Mutex
	last    Discovered
	started time.Time // when the request that led to last was sent
}

// NewDiscoverer returns a Discoverer for the kinds of the given API groups; one
// that is AllGroups stands for all.
func NewDiscoverer(client discovery.DiscoveryInterfaceWithContext, groups ...string) *Discoverer {
	return &Discoverer{client: client, groups: sets.New(groups...)}
}

// Discover returns what discovery shows at some moment after since. A
// Namespace that was terminating by then gets no new content, hence none of a
// kind that appears later: so Namespaces that are deleted together share one
// request. What failed is not remembered.
func (d *Discoverer) Discover(ctx context.Context, since time.Time) Discovered {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.started.After(since) {
		return d.last
	}
	started := time.Now()
	found := d.discover(ctx)
	if found.Failure == nil && found.ParseFailure == nil {
		d.last, d.started = found, started
	}
	return found
}

func (d *Discoverer) discover(ctx context.Context) Discovered {
	var (
		lists   []*metav1.APIResourceList
		failure error
	)
	if own := v1.SchemeGroupVersion; d.groups.Equal(sets.New(own.Group)) {
		list, err := d.client.ServerResourcesForGroupVersionWithContext(ctx, own.String())
		if err != nil {
			failure = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{own: err}}
		} else {
			lists = append(lists, list)
		}
	} else {
		var err error
		lists, err = d.client.ServerPreferredNamespacedResourcesWithContext(ctx)
		failure = d.failureOfGroups(err)
		if failure == nil && d.wants(own.Group) && !servesGroup(lists, own.Group) {
			// A Namespace exists, so its group does; what does not show it is
			// an aggregator that has not caught up.
			failure = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{own: errors.New("not served")}}
		}
	}

	found := Discovered{Failure: failure}
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

// failureOfGroups leaves out what failed in groups that nobody wants purged.
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

// purgeable tells whether a resource holds content of Namespaces, and how it
// can be deleted. Subresources hold none; neither does what cannot be listed.
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
