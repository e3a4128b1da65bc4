// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apiserver/pkg/storage/value"

	"github.com/borough-io/borough/pkg/storage/stored"
)

// onlyGood cannot decrypt other values than "good".
type onlyGood struct{ value.Transformer }

func (onlyGood) TransformFromStorage(_ context.Context, data []byte, _ value.Context) ([]byte, bool, error) {
	if string(data) != "good" {
		return nil, false, errors.New("the key is missing")
	}
	return data, false, nil
}

// oneKey is an etcd with one key.
type oneKey struct {
	clientv3.KV
	kv *mvccpb.KeyValue
}

func (e oneKey) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return &clientv3.GetResponse{Kvs: []*mvccpb.KeyValue{e.kv}}, nil
}

// TestUnreadIsForgotten checks that only values that cannot be decrypted are examined, and
// not values that were written since: the watch sends those.
func TestUnreadIsForgotten(t *testing.T) {
	f := NewFeed(nil)
	f.SetSource(Source{Resources: []stored.Resource{{Prefix: "/a/", Transformer: onlyGood{}}}})
	observe := func(value string, revision int64, deleted bool, unread int) {
		t.Helper()
		if _, _, err := f.change(t.Context(), &mvccpb.KeyValue{Key: []byte("/a/x"), Value: []byte(value), ModRevision: revision}, deleted); err != nil {
			t.Fatal(err)
		}
		if len(f.unread) != unread {
			t.Errorf("after %q: %v are to be examined, want %d", value, f.unread, unread)
		}
	}
	observe("bad", 1, false, 1)
	observe("good", 2, false, 0)
	observe("bad", 3, false, 1)
	observe("", 4, true, 0)
	observe("bad", 5, false, 1)

	client := clientv3.NewCtxClient(t.Context())
	client.KV = oneKey{kv: &mvccpb.KeyValue{Key: []byte("/a/x"), Value: []byte("good"), ModRevision: 6}}
	if result := f.source.examine(t.Context(), client, f.unread); result.readable || len(result.gone) > 0 {
		t.Errorf("a value that was written since: %+v", result)
	}
	examination{gone: map[string]int64{"/a/x": 3}}.forget(f.unread)
	if len(f.unread) != 1 {
		t.Error("a value that was written since the examination is not examined any more")
	}
}

// TestProgressOfThePast checks that progress to a revision before that of the sink, as a member
// that is behind sends it, is not passed on.
func TestProgressOfThePast(t *testing.T) {
	f := NewFeed(nil) // which is not called
	f.reached.Reach(5)
	for revision := int64(4); revision <= 5; revision++ {
		if err := f.send(t.Context(), &clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{Revision: revision}}); err != nil {
			t.Fatal(err)
		}
	}
	if f.Revision() != 5 {
		t.Errorf("the sink is at %d", f.Revision())
	}
}
