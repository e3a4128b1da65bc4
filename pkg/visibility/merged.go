// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"iter"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/authorization/rbac"
	"github.com/borough-io/borough/pkg/storage/changes"
)

// Merged are views of Namespaces by a policy that is not on the same etcd: that of a
// cluster. The changes of both have the order in which they are received.
type Merged struct {
	*Views

	mu     sync.Mutex // orders the changes
	policy map[policyKey]rbac.Change
	began  bool // whether there are Namespaces
}

type policyKey struct {
	resource        schema.GroupResource
	namespace, name string
}

// NewMerged returns views that keep the policy in the index. The feed of the views, of
// MergedResources, has to run after the first objects of the policy were set.
func NewMerged(index *rbac.Index) *Merged {
	m := &Merged{Views: newViews(index), policy: map[policyKey]rbac.Change{}}
	m.order = &order{}
	m.feed = changes.NewFeed(mergedSink{m})
	m.feed.BeginWithWrite()
	return m
}

// MergedResources returns the resources that the feed of merged views follows.
func MergedResources() []schema.GroupResource {
	return []schema.GroupResource{tenancy.Resource("namespaces")}
}

// SetPolicy makes a change of the policy.
func (m *Merged) SetPolicy(change rbac.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := policyKey{change.Resource, change.Namespace, change.Name}
	if change.Object == nil {
		delete(m.policy, key)
	} else {
		m.policy[key] = change
	}
	if m.began {
		m.apply(m.order.last+1, 0, []rbac.Change{change}, nil)
	}
}

// mergedSink receives the Namespaces of merged views.
type mergedSink struct{ *Merged }

// Reset implements changes.Sink.
func (m mergedSink) Reset(revision int64, objects iter.Seq[changes.Change]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began = true
	m.reset(m.order.last+1, revision, maps.Values(m.policy), objects)
}

// Apply implements changes.Sink.
func (m mergedSink) Apply(revision int64, namespaces []changes.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apply(m.order.last+1, revision, nil, namespaces)
}

// Advance implements changes.Sink.
func (m mergedSink) Advance(revision int64) {
	m.Views.mu.Lock()
	defer m.Views.mu.Unlock()
	m.order.advance(revision)
}
