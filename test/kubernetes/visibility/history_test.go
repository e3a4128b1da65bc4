// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	rbacv1 "k8s.io/api/rbac/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/kubernetes/replicas"
)

// history reads the history of all keys in etcd, and computes the views from it.
type history struct {
	client *clientv3.Client
	watch  clientv3.WatchChan
	unread []*clientv3.Event

	policy *policy
	views  []*view
	// revision is how far the history has been read.
	revision int64
	// What has changed at the revision that is being read: the policy, and Namespaces.
	policyChanged bool
	changed       map[string]bool
	// policyRevisions are those at which the policy has changed.
	policyRevisions map[int64]bool
}

func newHistory(ctx context.Context, client *clientv3.Client, views []*view) *history {
	return &history{
		client:  client,
		watch:   client.Watch(ctx, replicas.Prefix, clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithPrevKV()),
		policy:  newPolicy(),
		views:   views,
		changed: map[string]bool{},

		policyRevisions: map[int64]bool{},
	}
}

// read reads the history up to the present.
func (h *history) read(ctx context.Context) error {
	end, err := replicas.Mark(ctx, h.client)
	if err != nil {
		return err
	}
	for {
		for len(h.unread) > 0 {
			event := h.unread[0]
			h.unread = h.unread[1:]
			if event.Kv.ModRevision > h.revision {
				h.complete()
				h.revision = event.Kv.ModRevision
			}
			if h.revision == end {
				return nil
			}
			if err := h.apply(event); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("read the history from etcd: %w", context.Cause(ctx))
		case response, ok := <-h.watch:
			if !ok {
				return errors.New("read the history from etcd: the watch has ended")
			}
			if err := response.Err(); err != nil {
				return fmt.Errorf("read the history from etcd: %w", err)
			}
			h.unread = response.Events
		}
	}
}

// apply applies a write to the policy.
func (h *history) apply(event *clientv3.Event) error {
	kv, deleted := event.Kv, event.Type == clientv3.EventTypeDelete
	if deleted {
		kv = event.PrevKv
	}
	if !replicas.IsObject(string(kv.Key)) {
		return nil
	}
	obj, err := replicas.Decode(kv.Value)
	if err != nil {
		return fmt.Errorf("%s at %d: %w", kv.Key, event.Kv.ModRevision, err)
	}
	h.policy.set(obj, event.Kv.ModRevision, deleted)
	switch obj := obj.(type) {
	case *v1.Namespace:
		h.changed[obj.Name] = true
	case *rbacv1.Role, *rbacv1.ClusterRole, *rbacv1.RoleBinding, *rbacv1.ClusterRoleBinding:
		h.policyChanged = true
	}
	return nil
}

// complete updates the views when all writes of a revision are applied.
func (h *history) complete() {
	if !h.policyChanged && len(h.changed) == 0 {
		return
	}
	for _, view := range h.views {
		view.update(h.policy, h.revision, h.policyChanged, h.changed)
	}
	if h.policyChanged {
		h.policyRevisions[h.revision] = true
	}
	h.policyChanged, h.changed = false, map[string]bool{}
}

// terminating returns the names of the Namespaces that are being deleted.
func (h *history) terminating() []string {
	var names []string
	for name, ns := range h.policy.namespaces {
		if ns.deleting {
			names = append(names, name)
		}
	}
	return names
}
