// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package visibility shows each user the Namespaces that the user may get.
//
// What a user sees is a function of a revision of etcd: the Namespaces at this revision
// that the policy at this revision allows the user to get. Views keep the recent history of
// both. They read it from one feed, in the order of the revisions, so that a list and
// each event of a watch are what the user could see at one revision.
package visibility

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/authorization/rbac"
	"github.com/borough-io/borough/pkg/history"
	"github.com/borough-io/borough/pkg/storage/changes"
)

const (
	// maxChanges and maxBytes bound the history. The size is that in memory, about.
	maxChanges = 50_000
	maxBytes   = 128 << 20
	// touchSize is that of an rbac.Touch, whose bindings the index has, and versionSize that
	// of a version without its content.
	touchSize   = 72
	versionSize = 500
)

// Views are the Namespaces that users see. They are the sink of a feed of Resources.
type Views struct {
	index *rbac.Index
	feed  *changes.Feed

	mu sync.RWMutex
	// order is nil if positions are revisions of etcd.
	order      *order
	namespaces *namespaces
	// ahead are Namespaces by name that are decoded, but whose change has not been applied.
	ahead map[string]*tenancy.Namespace
	// history has the changes after the position floor until reached.
	history        []change
	bytes          int // of history
	floor, reached int64
	watchers       watchers
}

// change is what has changed at a position.
type change struct {
	position   int64
	namespaces []string
	touched    []rbac.Touch
	bytes      int // of what is kept for it
}

// New returns views that keep the policy in the index.
func New(index *rbac.Index) *Views {
	v := newViews(index)
	v.feed = changes.NewFeed(v)
	return v
}

func newViews(index *rbac.Index) *Views {
	return &Views{index: index, namespaces: newNamespaces(), ahead: map[string]*tenancy.Namespace{}, watchers: newWatchers()}
}

// Feed returns the feed of the views.
func (v *Views) Feed() *changes.Feed { return v.feed }

// AwaitWrite waits until decisions follow what was written to a resource at a revision of
// etcd, or another key at a later one. For other resources than those of the policy it
// returns at once.
func (v *Views) AwaitWrite(ctx context.Context, gr schema.GroupResource, revision int64) error {
	if !slices.Contains(rbac.Resources(), gr) {
		return nil
	}
	return v.feed.Await(ctx, revision)
}

// Resources returns the resources that the feed follows. They have to be on the same
// etcd.
func Resources() []schema.GroupResource {
	return append(rbac.Resources(), tenancy.Resource("namespaces"))
}

// Reset implements changes.Sink.
func (v *Views) Reset(revision int64, objects iter.Seq[changes.Change]) {
	// The policy is decoded without the lock.
	policy := policyOf(objects)
	v.reset(revision, revision, slices.Values(policy), namespacesOf(objects))
}

// policyOf returns the changes of the policy.
func policyOf(all iter.Seq[changes.Change]) (policy []rbac.Change) {
	for c := range all {
		if c.Resource.Group == rbacv1.GroupName {
			policy = append(policy, policyChange(&c))
		}
	}
	return policy
}

// namespacesOf returns the changes of Namespaces.
func namespacesOf(all iter.Seq[changes.Change]) iter.Seq[changes.Change] {
	return func(yield func(changes.Change) bool) {
		for c := range all {
			if c.Resource.Group != rbacv1.GroupName && !yield(c) {
				return
			}
		}
	}
}

// reset replaces everything by the policy and the Namespaces at a position, which is
// that of a revision.
func (v *Views) reset(position, revision int64, policy iter.Seq[rbac.Change], objects iter.Seq[changes.Change]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.index.Reset(position, policy)
	if v.order != nil {
		v.order.reset(revision)
	}
	v.namespaces, v.history, v.bytes = newNamespaces(), nil, 0
	v.floor, v.reached = position, position
	for object := range objects {
		// In force at each position of the history, which begins at this one.
		v.set(0, &object)
	}
	maps.DeleteFunc(v.ahead, func(_ string, n *tenancy.Namespace) bool { return revisionOf(n) <= revision })
	v.watchers.expire()
}

// Decoded implements changes.Sink.
func (v *Views) Decoded(obj runtime.Object) {
	n, ok := obj.(*tenancy.Namespace)
	if !ok {
		return
	}
	revision := revisionOf(n)
	v.mu.Lock()
	defer v.mu.Unlock()
	if last := v.namespaces.last(n.Name); last != nil && last.revision == revision {
		last.content.Store(&content{decoded: n})
	} else if revision > v.revisionAt(v.reached) {
		v.ahead[n.Name] = n
	}
}

// Deleted implements changes.Sink.
func (v *Views) Deleted(obj runtime.Object) {
	n, ok := obj.(*tenancy.Namespace)
	if !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	// The change itself may never be applied: the feed of a server in a cluster waits for
	// the right to read the policy.
	if held := v.ahead[n.Name]; held != nil && revisionOf(held) <= revisionOf(n) {
		delete(v.ahead, n.Name)
	}
}

// Apply implements changes.Sink.
func (v *Views) Apply(revision int64, changed []changes.Change) {
	all := slices.Values(changed)
	v.apply(revision, revision, policyOf(all), slices.Collect(namespacesOf(all)))
}

// apply makes all changes of a position, which is that of a revision or, if this is 0, of
// a change of the policy alone.
func (v *Views) apply(position, revision int64, policy []rbac.Change, namespaces []changes.Change) {
	// First, because a write to the policy is answered when the index has it.
	v.mu.Lock()
	defer v.mu.Unlock()
	next := change{position: position}
	if len(policy) > 0 {
		next.touched = v.index.Apply(position, policy)
		next.bytes = touchSize * len(next.touched)
	} else {
		v.index.Advance(position)
	}
	for i := range namespaces {
		next.namespaces = append(next.namespaces, namespaces[i].Name)
		next.bytes += v.set(position, &namespaces[i])
	}
	v.reached = position
	changed := len(next.namespaces)+len(next.touched) > 0
	if v.order != nil {
		v.order.add(revision, changed)
	}
	if changed {
		v.history = append(v.history, next)
		v.bytes += next.bytes
		v.trim()
		v.watchers.notify(v.index, &next)
	}
}

// Advance implements changes.Sink.
func (v *Views) Advance(revision int64) {
	v.index.Advance(revision)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reached = revision
}

// set begins or ends a version of a Namespace, and returns the size of the one that has
// ended. The lock is held.
func (v *Views) set(position int64, c *changes.Change) (ended int) {
	ended = v.namespaces.end(c.Name, position)
	written := &content{value: c.Value}
	if n := v.ahead[c.Name]; n != nil && revisionOf(n) <= c.Revision {
		delete(v.ahead, c.Name)
		if revisionOf(n) == c.Revision {
			written = &content{decoded: n}
		}
	}
	if c.Value != nil {
		next := &version{Lifetime: history.Lifetime{From: position}, revision: c.Revision, bytes: len(c.Value), resource: c.Resource}
		next.content.Store(written)
		v.namespaces.begin(c.Name, next)
	}
	return ended
}

// trim removes the oldest changes of a history that is too long, and those of which the
// index has no history any more, but not the last. The lock is held.
func (v *Views) trim() {
	floor := v.index.Floor()
	for len(v.history) > 1 && (len(v.history) > maxChanges || v.bytes > maxBytes || v.history[0].position <= floor) {
		oldest := v.history[0]
		v.history[0] = change{}
		v.history = v.history[1:]
		v.bytes -= oldest.bytes
		v.floor = oldest.position
		for _, name := range oldest.namespaces {
			v.namespaces.trim(name, v.floor)
		}
	}
	if v.order != nil {
		v.order.trim(v.floor)
	}
}

// oldest returns the position at which the history begins. The lock is held.
func (v *Views) oldest() int64 { return max(v.floor, v.index.Floor()) }

// lost reports whether the history does not have a position any more. What was read
// from it then may be wrong.
func (v *Views) lost(position int64) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return position < v.oldest()
}

// policyChange returns a change of the policy. An object that cannot be read grants
// nothing.
func policyChange(c *changes.Change) rbac.Change {
	change := rbac.Change{Resource: c.Resource.GroupResource, Namespace: c.Namespace, Name: c.Name}
	if c.Value == nil {
		return change
	}
	obj, err := runtime.Decode(c.Resource.Codec, c.Value)
	if err != nil {
		return change
	}
	if object, err := meta.Accessor(obj); err == nil && object.GetName() == c.Name && object.GetNamespace() == c.Namespace {
		change.Object = obj
	}
	return change
}
