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
	revision := r.revisionAt(position)
	granted := false
	var last watch.Event // not sent yet
	lastByRights := false
	var own []watch.Event // those of Namespaces that have changed at the revision
	for _, name := range slices.Sorted(maps.Keys(names)) {
		event, byRights := r.event(name, position, &before, &after)
		if r.lost(position - 1) {
			return r.sendExpired(ctx)
		}
		switch {
		case event.Object == nil:
			continue
		case event.Type != watch.Deleted && revisionOf(event.Object) == revision:
			own = append(own, event)
			continue
		case last.Object != nil && !r.send(ctx, last):
			return false
		}
		last, lastByRights = event, byRights
		granted = granted || event.Type != watch.Deleted
	}
	if r.lost(position - 1) {
		return r.sendExpired(ctx) // the rights may be incomplete
	}
	if lastByRights && len(own) == 0 {
		setRevision(last.Object, revision)
	}
	if last.Object != nil {
		own = slices.Insert(own, 0, last)
	}
	for _, event := range own {
		if !r.send(ctx, event) {
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

// event returns the event of a Namespace at a position, or one without an object: the
// difference of what the user sees before and at the position. byRights is whether its
// resourceVersion is not that of the Namespace: that of a DELETED, and of a MODIFIED by which
// only the access changes, if that has a revision: to informers, a MODIFIED with the same
// resourceVersion is a resync. It is the revision before, as if it were not the last event.
func (r *watcher) event(name string, position int64, before, after *rbac.ClusterRights) (event watch.Event, byRights bool) {
	earlier, now := r.visible(name, position-1, before), r.visible(name, position, after)
	if earlier == now {
		return watch.Event{}, false
	}
	was, is := r.selected(name, earlier), r.selected(name, now)
	switch {
	case was == nil && is == nil:
		return watch.Event{}, false
	case was == nil:
		return watch.Event{Type: watch.Added, Object: is}, false
	case is == nil:
		event = watch.Event{Type: watch.Deleted, Object: was}
	default:
		event = watch.Event{Type: watch.Modified, Object: is}
	}
	revision := r.revisionAt(position - 1)
	byRights = event.Type == watch.Deleted || earlier.version == now.version && revision < r.revisionAt(position)
	if byRights {
		setRevision(event.Object, revision)
	}
	return event, byRights
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
