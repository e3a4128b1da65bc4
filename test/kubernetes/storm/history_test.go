// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/kubernetes/replicas"
)

const (
	// prefix is the prefix of all keys.
	prefix           = replicas.Prefix
	namespacesPrefix = prefix + tenancy.GroupName + "/namespaces/"
)

// write is a write to a key. A resourceVersion is a revision of etcd.
type write struct {
	key      string
	revision int64
}

// incarnation is an object, which must be created once.
type incarnation struct {
	key string
	uid types.UID
}

// history is the history of all keys in etcd during a storm.
type history struct {
	client *clientv3.Client
	events clientv3.WatchChan
	unread []*clientv3.Event

	writes     map[write]struct{}       // all that were seen
	created    map[incarnation]int64    // the revision of each
	existing   map[string]types.UID     // by key
	namespaces map[string]liveNamespace // those that exist
	// usage is what the objects use of the quotas, by Namespace.
	usage map[string]*usage
	// touched are the Namespaces that the revision of the last event has written to.
	touched   map[string]bool
	templates templated
	revision  int64
	compared  int // quotas
	// content has, by Namespace, the keys in it and the UID of the Namespace when
	// each was created.
	content map[string]map[string]types.UID

	// orphans are objects that were created without a Namespace, remained when
	// their Namespace was removed, or are in another incarnation of the Namespace
	// than the one they were created in.
	orphans []string
	// miscounts are quotas whose usage is not the sum over the objects, or has grown
	// beyond the limit.
	miscounts []string
	// violations are all other errors: objects that were created in a terminating
	// Namespace, deleted from one that was not terminating and not by a client, or
	// created by a request that cannot create; objects that were created twice;
	// acknowledged writes that are not in the history; and objects that exist after
	// an acknowledged delete.
	violations []string
}

// liveNamespace is a Namespace that exists.
type liveNamespace struct {
	uid      types.UID
	deleting bool
}

// newHistory returns the history of all writes until the context ends.
func newHistory(ctx context.Context, client *clientv3.Client) *history {
	return &history{
		client:     client,
		events:     client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(1)),
		writes:     map[write]struct{}{},
		created:    map[incarnation]int64{},
		existing:   map[string]types.UID{},
		namespaces: map[string]liveNamespace{},
		content:    map[string]map[string]types.UID{},
		usage:      map[string]*usage{},
		touched:    map[string]bool{},
		templates:  templated{keys: map[string]bool{}},
	}
}

// examine reads the history up to the present, compares it with all existing
// keys, and checks that it has the acknowledged writes and deletes. It returns the
// number of keys in Namespaces.
func (h *history) examine(ctx context.Context, acknowledged []write, deleted []incarnation) (keys int, err error) {
	mark, err := replicas.Mark(ctx, h.client)
	if err != nil {
		return 0, err
	}
	if err := h.readTo(ctx, mark); err != nil {
		return 0, fmt.Errorf("read the history from etcd: %w", err)
	}
	for _, w := range acknowledged {
		if _, ok := h.writes[w]; !ok {
			h.violations = append(h.violations, fmt.Sprintf("the write to %s at %d was acknowledged, and is not in the history", w.key, w.revision))
		}
	}
	for _, object := range deleted {
		if h.existing[object.key] == object.uid {
			h.violations = append(h.violations, fmt.Sprintf("the delete of %s with the UID %s was acknowledged, and it exists", object.key, object.uid))
		}
	}
	return h.compare(ctx, mark)
}

func (h *history) readTo(ctx context.Context, end int64) error {
	for {
		for len(h.unread) > 0 {
			event := h.unread[0]
			h.unread = h.unread[1:]
			if event.Kv.ModRevision == end {
				return nil
			}
			if err := h.apply(event); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case response, ok := <-h.events:
			if !ok {
				return errors.New("the watch has ended")
			}
			if err := response.Err(); err != nil {
				return err
			}
			h.unread = response.Events
		}
	}
}

func (h *history) apply(event *clientv3.Event) error {
	key, revision := string(event.Kv.Key), event.Kv.ModRevision
	if !replicas.IsObject(key) {
		return nil
	}
	h.writes[write{key, revision}] = struct{}{}
	if revision != h.revision {
		h.compareQuotas()
		h.compareTemplates()
		h.revision = revision
	}
	if err := h.takeTemplate(event); err != nil {
		return fmt.Errorf("%s at %d: %w", key, revision, err)
	}
	deleted := event.Type == clientv3.EventTypeDelete
	if deleted {
		delete(h.existing, key)
	}
	if event.IsCreate() {
		if err := h.create(event); err != nil {
			return err
		}
	}
	if name, ok := strings.CutPrefix(key, namespacesPrefix); ok {
		if !deleted {
			ns, err := decode(event.Kv.Value)
			if err != nil {
				return fmt.Errorf("%s at %d: %w", key, revision, err)
			}
			h.namespaces[name] = liveNamespace{ns.UID, !ns.DeletionTimestamp.IsZero()}
			return nil
		}
		for left := range h.content[name] {
			h.orphans = append(h.orphans, fmt.Sprintf("%d: %s is left behind", revision, left))
		}
		delete(h.namespaces, name)
		return nil
	}

	namespace, name, err := splitKey(key)
	if err != nil {
		return err
	}
	if namespace == "" {
		return nil
	}
	if err := h.count(namespace, event); err != nil {
		return fmt.Errorf("%s at %d: %w", key, revision, err)
	}
	content := h.content[namespace]
	ns, exists := h.namespaces[namespace]
	switch {
	case deleted:
		if exists && !ns.deleting && content[key] == ns.uid && !deletable(name) {
			h.violations = append(h.violations, fmt.Sprintf("%d: %s is deleted, but its Namespace is not terminating", revision, key))
		}
		delete(content, key)
	case event.IsCreate():
		if content == nil {
			content = map[string]types.UID{}
			h.content[namespace] = content
		}
		content[key] = ns.uid
		if !exists {
			h.orphans = append(h.orphans, fmt.Sprintf("%d: %s is created without a Namespace", revision, key))
		}
		if ns.deleting {
			h.violations = append(h.violations, fmt.Sprintf("%d: %s is created in a terminating Namespace", revision, key))
		}
		if name == absent {
			h.violations = append(h.violations, fmt.Sprintf("%d: %s is created without a request", revision, key))
		}
	}
	return nil
}

// create checks that an object was not created before.
func (h *history) create(event *clientv3.Event) error {
	obj, err := replicas.Decode(event.Kv.Value)
	if err != nil {
		return fmt.Errorf("%s at %d: %w", event.Kv.Key, event.Kv.ModRevision, err)
	}
	object, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("%s at %d: %w", event.Kv.Key, event.Kv.ModRevision, err)
	}
	c := incarnation{string(event.Kv.Key), object.GetUID()}
	if before, twice := h.created[c]; twice {
		h.violations = append(h.violations, fmt.Sprintf("%d: %s is created with the UID %s, as before at %d", event.Kv.ModRevision, c.key, c.uid, before))
	}
	h.created[c] = event.Kv.ModRevision
	h.existing[c.key] = c.uid
	return nil
}

// compare reads the keys that exist at a revision. Each must be in an existing
// Namespace, be younger than it, and match the history.
func (h *history) compare(ctx context.Context, revision int64) (keys int, err error) {
	namespaces, err := h.client.Get(ctx, namespacesPrefix, clientv3.WithPrefix(), clientv3.WithRev(revision))
	if err != nil {
		return 0, fmt.Errorf("read all Namespaces from etcd: %w", err)
	}
	created, uids := map[string]int64{}, map[string]types.UID{}
	for _, kv := range namespaces.Kvs {
		ns, err := decode(kv.Value)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", kv.Key, err)
		}
		name := strings.TrimPrefix(string(kv.Key), namespacesPrefix)
		created[name], uids[name] = kv.CreateRevision, ns.UID
	}
	all, err := h.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision), clientv3.WithKeysOnly())
	if err != nil {
		return 0, fmt.Errorf("read all keys from etcd: %w", err)
	}
	for _, kv := range all.Kvs {
		key := string(kv.Key)
		if !replicas.IsObject(key) || strings.HasPrefix(key, namespacesPrefix) {
			continue
		}
		namespace, _, err := splitKey(key)
		if err != nil {
			return 0, err
		}
		if namespace == "" {
			continue
		}
		keys++
		since, exists := created[namespace]
		uid, known := h.content[namespace][key]
		switch {
		case !exists:
			h.orphans = append(h.orphans, fmt.Sprintf("%s is in no Namespace", key))
		case kv.CreateRevision < since:
			h.orphans = append(h.orphans, fmt.Sprintf("%s was created at %d, its Namespace at %d", key, kv.CreateRevision, since))
		case !known:
			return 0, fmt.Errorf("the history does not have %s", key)
		case uid != uids[namespace]:
			h.orphans = append(h.orphans, fmt.Sprintf("%s was created in Namespace UID %q, which is %q now", key, uid, uids[namespace]))
		}
	}
	h.compareQuotas()
	h.compareTemplates()
	known := 0
	for _, content := range h.content {
		known += len(content)
	}
	if keys != known {
		return 0, fmt.Errorf("there are %d keys, the history has %d", keys, known)
	}
	return keys, nil
}

// splitKey returns the Namespace, unless it is in none, and the name of the object
// with a key.
func splitKey(key string) (namespace, name string, err error) {
	parts := strings.Split(strings.TrimPrefix(key, prefix), "/") // group, resource
	switch len(parts) {
	case 3:
		return "", parts[2], nil
	case 4:
		return parts[2], parts[3], nil
	}
	return "", "", fmt.Errorf("unknown key %s", key)
}

func decode(value []byte) (*v1.Namespace, error) {
	obj, err := replicas.Decode(value)
	if err != nil {
		return nil, err
	}
	ns, ok := obj.(*v1.Namespace)
	if !ok {
		return nil, fmt.Errorf("decode a Namespace: it is a %T", obj)
	}
	return ns, nil
}

// describe formats a stored Namespace for messages.
func describe(value []byte) string {
	ns, err := decode(value)
	if err != nil {
		return err.Error()
	}
	ns.ManagedFields = nil
	text, err := json.Marshal(ns)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
