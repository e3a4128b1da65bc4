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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/scheme"
)

const (
	// prefix is what the keys of everything begin with.
	prefix           = "/registry/tenancy.borough.io/"
	namespacesPrefix = prefix + "namespaces/"
	// markKey is a key of our own, to know how far history has been read.
	markKey = prefix + "mark"
)

// write is a write to a key. A resourceVersion is a revision of etcd.
type write struct {
	key      string
	revision int64
}

// history is what etcd tells of a storm: everything that ever happened to the
// keys.
type history struct {
	client *clientv3.Client
	events clientv3.WatchChan
	unread []*clientv3.Event

	writes     map[write]struct{} // all that were seen
	namespaces map[string]life    // those that exist
	// content holds, by Namespace, the keys in it, and the UID that it had when
	// each was created.
	content map[string]map[string]types.UID

	// orphans are objects that were created where no Namespace was, or left
	// behind when theirs was removed, or are in another incarnation than the
	// one that they were created in.
	orphans []string
	// wrongs are other things that must not be: objects that were created in a
	// Namespace that was being deleted, or deleted from one that was not, or
	// created by a request that cannot create; and acknowledged writes that
	// never happened.
	wrongs []string
}

// life is a Namespace that exists.
type life struct {
	uid      types.UID
	deleting bool
}

// newHistory returns the history of all that is written while the context lasts.
func newHistory(ctx context.Context, client *clientv3.Client) *history {
	return &history{
		client:     client,
		events:     client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(1)),
		writes:     map[write]struct{}{},
		namespaces: map[string]life{},
		content:    map[string]map[string]types.UID{},
	}
}

// examine reads on in the history to the present, compares that with all the
// keys there are, and looks for the writes that were acknowledged. It returns how
// many keys there are, those of Namespaces not counted.
func (h *history) examine(ctx context.Context, acknowledged []write) (keys int, err error) {
	mark, err := h.client.Put(ctx, markKey, "")
	if err != nil {
		return 0, fmt.Errorf("mark the present in etcd: %w", err)
	}
	if err := h.readTo(ctx, mark.Header.Revision); err != nil {
		return 0, fmt.Errorf("read the history from etcd: %w", err)
	}
	for _, w := range acknowledged {
		if _, ok := h.writes[w]; !ok {
			h.wrongs = append(h.wrongs, fmt.Sprintf("the write to %s at %d was acknowledged, and never happened", w.key, w.revision))
		}
	}
	return h.compare(ctx, mark.Header.Revision)
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
	h.writes[write{key, revision}] = struct{}{}
	deleted := event.Type == clientv3.EventTypeDelete
	if name, ok := strings.CutPrefix(key, namespacesPrefix); ok {
		if !deleted {
			ns, err := decode(event.Kv.Value)
			if err != nil {
				return fmt.Errorf("%s at %d: %w", key, revision, err)
			}
			h.namespaces[name] = life{ns.UID, !ns.DeletionTimestamp.IsZero()}
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
	content := h.content[namespace]
	ns, exists := h.namespaces[namespace]
	switch {
	case deleted:
		if exists && !ns.deleting && content[key] == ns.uid {
			h.wrongs = append(h.wrongs, fmt.Sprintf("%d: %s is deleted, and its Namespace is not", revision, key))
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
			h.wrongs = append(h.wrongs, fmt.Sprintf("%d: %s is created in a Namespace that is being deleted", revision, key))
		}
		if name == absent {
			h.wrongs = append(h.wrongs, fmt.Sprintf("%d: %s is created, and nobody asked for it", revision, key))
		}
	}
	return nil
}

// compare reads the keys that there are at a revision, which must be in a
// Namespace that exists, be younger than it, and be what history has led to.
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
		if key == markKey || strings.HasPrefix(key, namespacesPrefix) {
			continue
		}
		keys++
		namespace, _, err := splitKey(key)
		if err != nil {
			return 0, err
		}
		since, exists := created[namespace]
		uid, known := h.content[namespace][key]
		switch {
		case !exists:
			h.orphans = append(h.orphans, fmt.Sprintf("%s is in no Namespace", key))
		case kv.CreateRevision < since:
			h.orphans = append(h.orphans, fmt.Sprintf("%s was created at %d, its Namespace at %d", key, kv.CreateRevision, since))
		case !known:
			return 0, fmt.Errorf("history does not know %s", key)
		case uid != uids[namespace]:
			h.orphans = append(h.orphans, fmt.Sprintf("%s was created in Namespace UID %q, which is %q now", key, uid, uids[namespace]))
		}
	}
	known := 0
	for _, content := range h.content {
		known += len(content)
	}
	if keys != known {
		return 0, fmt.Errorf("there are %d keys, and history knows %d", keys, known)
	}
	return keys, nil
}

// splitKey returns the Namespace and the name that the key of a namespaced
// object tells.
func splitKey(key string) (namespace, name string, err error) {
	parts := strings.Split(strings.TrimPrefix(key, prefix), "/")
	if len(parts) != 3 {
		return "", "", fmt.Errorf("unknown key %s", key)
	}
	return parts[1], parts[2], nil
}

func decode(value []byte) (*v1.Namespace, error) {
	obj, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), value)
	if err != nil {
		return nil, fmt.Errorf("decode a Namespace: %w", err)
	}
	ns, ok := obj.(*v1.Namespace)
	if !ok {
		return nil, fmt.Errorf("decode a Namespace: it is a %T", obj)
	}
	return ns, nil
}

// describe is a stored Namespace for people.
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
