// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"fmt"
	"slices"
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// view is what one user sees: which version of which Namespaces, at every revision.
type view struct {
	identity
	selector labels.Selector
	changes  []change // in order of their revisions
	now      map[string]*version
	byName   map[string][]int // the changes of each Namespace
}

// change is a change of a view.
type change struct {
	revision      int64
	name          string
	before, after *version // nil if the Namespace is not in view
}

func newView(who identity, selector labels.Selector) *view {
	return &view{identity: who, selector: selector, now: map[string]*version{}, byName: map[string][]int{}}
}

// update records how the view is at a revision. All is whether all Namespaces may have
// changed, else it is only those that are named.
func (v *view) update(p *policy, revision int64, all bool, names map[string]bool) {
	if all {
		names = map[string]bool{}
		for name := range p.namespaces {
			names[name] = true
		}
		for name := range v.now {
			names[name] = true
		}
	}
	for name := range names {
		before, after := v.now[name], p.namespaces[name]
		if after != nil && (!v.selector.Matches(after.labels) || !p.sees(v.identity, name)) {
			after = nil
		}
		if before == after {
			continue
		}
		set(v.now, name, after, after == nil)
		v.byName[name] = append(v.byName[name], len(v.changes))
		v.changes = append(v.changes, change{revision, name, before, after})
	}
}

// at returns what the user saw at a revision.
func (v *view) at(revision int64) map[string]*version {
	seen := map[string]*version{}
	for name, changes := range v.byName {
		later := sort.Search(len(changes), func(i int) bool { return v.changes[changes[i]].revision > revision })
		if later > 0 {
			if last := v.changes[changes[later-1]].after; last != nil {
				seen[name] = last
			}
		}
	}
	return seen
}

// after returns the index of the first change after a revision.
func (v *view) after(revision int64) int {
	return sort.Search(len(v.changes), func(i int) bool { return v.changes[i].revision > revision })
}

// event returns the event of a watch that reports the change, which is the last one of
// its revision or not.
func (c *change) event(last bool) event {
	switch {
	case c.before == nil:
		return event{watch.Added, object{c.name, c.after.uid, c.after.revision, c.after.content}}
	case c.after == nil:
		// The object is the last version that was in view; its resourceVersion is when it
		// left. If others follow, it is the one before, so that a client that is cut off in
		// between does not continue behind them.
		revision := c.revision
		if !last {
			revision--
		}
		return event{watch.Deleted, object{c.name, c.before.uid, revision, c.before.content}}
	}
	return event{watch.Modified, object{c.name, c.after.uid, c.after.revision, c.after.content}}
}

// isGrant reports whether the Namespace came into view by itself, so that the
// resourceVersion of the event is older than the change.
func (c *change) isGrant() bool { return c.before == nil && c.after.revision < c.revision }

// objects returns the objects of a list in order.
func objects(seen map[string]*version) []object {
	list := make([]object, 0, len(seen))
	for name, version := range seen {
		list = append(list, object{name, version.uid, version.revision, version.content})
	}
	slices.SortFunc(list, compareObjects)
	return list
}

func newVersion(meta *metav1.ObjectMeta, revision int64) *version {
	return &version{meta.UID, revision, contentOf(meta), meta.Labels, meta.DeletionTimestamp != nil}
}

// contentOf returns what the test compares of the content of a Namespace.
func contentOf(meta *metav1.ObjectMeta) string {
	var deleted int64
	if meta.DeletionTimestamp != nil {
		deleted = meta.DeletionTimestamp.Unix()
	}
	return fmt.Sprint(meta.Labels, meta.Annotations, deleted)
}
