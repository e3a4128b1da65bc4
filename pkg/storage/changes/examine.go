// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/storage/unreadable"
)

// examination is what became of values that could not be decrypted.
type examination struct {
	// gone are the keys that do not exist any more, with the revisions of their values.
	gone map[string]int64
	// readable means that one of the values can be decrypted now.
	readable bool
}

// examine reads some of the values that could not be decrypted, while the watch continues: a
// key service that does not answer holds up each of them for some seconds.
func (f *Feed) examine(ctx context.Context, client *clientv3.Client) <-chan examination {
	keys := map[string]int64{}
	for key, revision := range f.unread {
		if len(keys) == unreadable.MaxExamined {
			break
		}
		keys[key] = revision
	}
	result := make(chan examination, 1)
	go func() { result <- f.source.examine(ctx, client, keys) }()
	return result
}

// examine reads keys until one can be decrypted, or it fails to read one.
func (s *Source) examine(ctx context.Context, client *clientv3.Client, keys map[string]int64) examination {
	result := examination{gone: map[string]int64{}}
	for key, revision := range keys {
		response, err := client.Get(ctx, key)
		if err != nil {
			return result
		}
		if len(response.Kvs) == 0 {
			// Also if it was deleted before a list, which does not have it.
			result.gone[key] = revision
			continue
		}
		kv := response.Kvs[0]
		if kv.ModRevision != revision {
			continue // the watch will send it
		}
		resource, _, _, ok := s.split(key)
		if !ok {
			continue
		}
		switch _, err := resource.Decrypt(ctx, kv); {
		case err == nil:
			result.readable = true
			return result
		case unreadable.IsOutage(err):
			return result
		}
	}
	return result
}

// forget removes the keys that do not exist any more.
func (e examination) forget(unread map[string]int64) {
	for key, revision := range e.gone {
		if unread[key] == revision {
			delete(unread, key)
		}
	}
}
