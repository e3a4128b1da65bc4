// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/borough-io/borough/pkg/authorization/rbac"
)

// sendPosition sends the events of a position.
func (r *watcher) sendPosition(ctx context.Context, position int64, items []item) bool {
	before, after := r.rights, r.rights
	names := map[string]struct{}{}
	for _, i := range items {
		if i.name != "" {
			names[i.name] = struct{}{}
		} else if after = r.View.rights(position); !before.Equal(&after) {
			r.addDifferences(names, position, &before, &after)
		}
	}
	// No event but the last has the revision, because a client that is cut off after an
	// event continues behind its resourceVersion.
	earlier, revision := r.revisionAt(position-1), r.revisionAt(position)
	granted := false
	var last difference  // not sent yet
	var own []difference // those of Namespaces that have changed at the revision
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d := r.difference(name, position, &before, &after)
		if r.lost(position - 1) {
			return r.sendExpired(ctx)
		}
		// To informers, a MODIFIED with the same resourceVersion is a resync. In a cluster, a
		// change of rights has no revision.
		if d.unchanged = d.unchanged && (d.Type == watch.Deleted || earlier < revision); d.unchanged {
			d.last = d.Type == watch.Modified && (revisionOf(d.Object) == earlier || r.newest == sent{name, earlier})
			setRevision(d.Object, earlier) // as if it were not the last event
		}
		switch {
		case d.Object == nil:
			continue
		case d.Type != watch.Deleted && revisionOf(d.Object) == revision:
			own = append(own, d)
			continue
		}
		granted = granted || d.Type != watch.Deleted
		if last.last {
			last, d = d, last
		}
		if last.Object != nil && !r.send(ctx, last.Event) {
			return false
		}
		last = d
	}
	if r.lost(position - 1) {
		return r.sendExpired(ctx) // the rights may be incomplete
	}
	if last.unchanged && len(own) == 0 {
		setRevision(last.Object, revision)
		r.newest = sent{last.name, revision}
	}
	if last.Object != nil {
		own = slices.Insert(own, 0, last)
	}
	for _, d := range own {
		if !r.send(ctx, d.Event) {
			return false
		}
	}
	r.position, r.rights = position, after
	if granted && r.bookmarks {
		return r.sendBookmark(ctx, position, nil)
	}
	return true
}

// addDifferences adds the names of the Namespaces that the user may see, or whose access
// changes, by rights from before or after a position and not both.
func (r *watcher) addDifferences(names map[string]struct{}, position int64, before, after *rbac.ClusterRights) {
	r.views.mu.RLock()
	defer r.views.mu.RUnlock()
	if before.All != after.All {
		for name := range r.views.namespaces.from("") {
			names[name] = struct{}{}
		}
		return
	}
	for _, name := range slices.Concat(before.Names, after.Names) {
		names[name] = struct{}{}
	}
	if r.asProjects && before.Access != after.Access {
		for _, namespace := range r.seen("", position, 0) {
			names[namespace.name] = struct{}{}
		}
	}
}

// difference is an event of a Namespace.
type difference struct {
	watch.Event
	name string
	// unchanged is whether the object has the version of the Namespace that the user has seen
	// before: that of a DELETED, and of a MODIFIED by which only the access changes.
	unchanged bool
	// last is whether it has to be the last event of its position, because the client has the
	// object with the revision before, which the other events get.
	last bool
}

// sent is a Namespace in an event that has got the revision of a change of rights.
type sent struct {
	name     string
	revision int64
}

// difference returns the event of a Namespace at a position, or one without an object: the
// difference of what the user sees before and at the position.
func (r *watcher) difference(name string, position int64, before, after *rbac.ClusterRights) difference {
	earlier, now := r.visible(name, position-1, before), r.visible(name, position, after)
	if earlier == now {
		return difference{}
	}
	was, is := r.selected(name, earlier), r.selected(name, now)
	d := difference{Event: watch.Event{Type: watch.Modified, Object: is}, name: name, unchanged: earlier.version == now.version}
	switch {
	case was == nil && is == nil:
		return difference{}
	case was == nil:
		d.Type, d.unchanged = watch.Added, false
	case is == nil:
		d.Type, d.Object, d.unchanged = watch.Deleted, was, true
	}
	return d
}

// selected returns the object that shows what the user sees of a Namespace, or nil if
// the user does not see it or the predicate does not select it.
func (r *watcher) selected(name string, v visible) runtime.Object {
	if v.version == nil {
		return nil
	}
	namespace := v.version.decode(name)
	if namespace == nil {
		return nil
	}
	if selected, err := r.predicate.Matches(namespace); err != nil || !selected {
		return nil
	}
	own := *namespace // its resourceVersion may be set
	return r.object(&own, v.access)
}
