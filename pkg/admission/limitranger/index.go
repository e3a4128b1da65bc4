// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/borough-io/borough/pkg/admission/limitranger/limits"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/precondition"
)

// index is the event handler of the informer of LimitRanges. It holds the
// LimitRanges by Namespace, so that a lookup takes the same time for any number of
// Namespaces.
type index struct {
	mu          sync.RWMutex
	byNamespace map[string]*inNamespace
	// revision is the latest revision of an event.
	revision int64
	// changed is called after an event of a Namespace at a revision.
	changed func(namespace string, revision int64)
}

// inNamespace is a snapshot of all LimitRanges in one Namespace, sorted by name. It
// is immutable.
type inNamespace struct {
	limitRanges []*v1.LimitRange
	// versions identify the LimitRanges in storage.
	versions []precondition.Version
	// set returns the LimitRanges prepared for Pods. The first call computes it.
	set func() *limits.Set
}

var _ cache.ResourceEventHandler = &index{}

var none = newInNamespace(nil)

func newIndex(changed func(namespace string, revision int64)) *index {
	return &index{byNamespace: map[string]*inNamespace{}, changed: changed}
}

func newInNamespace(sorted []*v1.LimitRange) *inNamespace {
	versions := make([]precondition.Version, len(sorted))
	for i, limitRange := range sorted {
		versions[i] = precondition.Version{Name: limitRange.Name, Revision: revisionOf(limitRange.ResourceVersion)}
	}
	return &inNamespace{sorted, versions, sync.OnceValue(func() *limits.Set { return limits.NewSet(sorted) })}
}

// in returns the LimitRanges in a Namespace, and the latest revision of an event in
// any Namespace. After an informer lists again, its events are not in the order of
// their revisions, so a LimitRange from before that revision may be missing.
func (x *index) in(namespace string) (found *inNamespace, revision int64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if found = x.byNamespace[namespace]; found == nil {
		found = none
	}
	return found, x.revision
}

// OnAdd implements cache.ResourceEventHandler.
func (x *index) OnAdd(obj any, _ bool) { x.put(obj.(*v1.LimitRange)) }

// OnUpdate implements cache.ResourceEventHandler.
func (x *index) OnUpdate(_, obj any) { x.put(obj.(*v1.LimitRange)) }

// OnDelete implements cache.ResourceEventHandler.
func (x *index) OnDelete(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	deleted := obj.(*v1.LimitRange)
	defer x.changed(deleted.Namespace, revisionOf(deleted.ResourceVersion))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.revision = max(x.revision, revisionOf(deleted.ResourceVersion))
	left := x.byNamespace[deleted.Namespace].without(deleted.Name)
	if len(left) == 0 {
		delete(x.byNamespace, deleted.Namespace)
		return
	}
	x.byNamespace[deleted.Namespace] = newInNamespace(left)
}

func (x *index) put(limitRange *v1.LimitRange) {
	defer x.changed(limitRange.Namespace, revisionOf(limitRange.ResourceVersion))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.revision = max(x.revision, revisionOf(limitRange.ResourceVersion))
	all := append(x.byNamespace[limitRange.Namespace].without(limitRange.Name), limitRange)
	slices.SortFunc(all, byName)
	x.byNamespace[limitRange.Namespace] = newInNamespace(all)
}

// without returns a copy of the LimitRanges, except the one with the name.
func (n *inNamespace) without(name string) []*v1.LimitRange {
	if n == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.limitRanges), func(l *v1.LimitRange) bool { return l.Name == name })
}

func byName(a, b *v1.LimitRange) int { return cmp.Compare(a.Name, b.Name) }
