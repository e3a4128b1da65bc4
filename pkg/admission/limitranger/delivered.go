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
)

// delivered is what the watch of LimitRanges has delivered, by Namespace: an
// informer's handler. To look up a Namespace is one step, however many there are.
type delivered struct {
	mu          sync.RWMutex
	byNamespace map[string]*inNamespace
}

// inNamespace is all LimitRanges of one Namespace at a time, sorted by name. It
// does not change.
type inNamespace struct {
	limitRanges []*v1.LimitRange
	// set prepares them for Pods, once there are any.
	set func() *limits.Set
}

var _ cache.ResourceEventHandler = &delivered{}

var none = newInNamespace(nil)

func newDelivered() *delivered { return &delivered{byNamespace: map[string]*inNamespace{}} }

func newInNamespace(sorted []*v1.LimitRange) *inNamespace {
	return &inNamespace{sorted, sync.OnceValue(func() *limits.Set { return limits.NewSet(sorted) })}
}

// in returns the LimitRanges of a Namespace.
func (d *delivered) in(namespace string) *inNamespace {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if found := d.byNamespace[namespace]; found != nil {
		return found
	}
	return none
}

// OnAdd is called for a LimitRange that is new.
func (d *delivered) OnAdd(obj any, _ bool) { d.put(obj.(*v1.LimitRange)) }

// OnUpdate is called for a LimitRange that has changed.
func (d *delivered) OnUpdate(_, obj any) { d.put(obj.(*v1.LimitRange)) }

// OnDelete is called for a LimitRange that is gone.
func (d *delivered) OnDelete(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	gone := obj.(*v1.LimitRange)
	d.mu.Lock()
	defer d.mu.Unlock()
	left := d.byNamespace[gone.Namespace].without(gone.Name)
	if len(left) == 0 {
		delete(d.byNamespace, gone.Namespace)
		return
	}
	d.byNamespace[gone.Namespace] = newInNamespace(left)
}

func (d *delivered) put(limitRange *v1.LimitRange) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := append(d.byNamespace[limitRange.Namespace].without(limitRange.Name), limitRange)
	slices.SortFunc(all, byName)
	d.byNamespace[limitRange.Namespace] = newInNamespace(all)
}

// without returns a copy that lacks the LimitRange of that name.
func (n *inNamespace) without(name string) []*v1.LimitRange {
	if n == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.limitRanges), func(l *v1.LimitRange) bool { return l.Name == name })
}

func byName(a, b *v1.LimitRange) int { return cmp.Compare(a.Name, b.Name) }
