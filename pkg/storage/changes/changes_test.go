// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/borough-io/borough/pkg/storage/changes"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/pkg/storage/stored"
	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// recorder is a sink that records what it receives as lines.
type recorder struct{ lines chan string }

func (r recorder) Reset(revision int64, objects iter.Seq[changes.Change]) {
	r.lines <- fmt.Sprintf("reset %d:%s", revision, describe(slices.Collect(objects)))
}

func (r recorder) Apply(revision int64, changed []changes.Change) {
	r.lines <- fmt.Sprintf("apply %d:%s", revision, describe(changed))
}

func (r recorder) Advance(int64) {}

func (r recorder) Decoded(runtime.Object) {}

func (r recorder) Deleted(runtime.Object) {}

func describe(changed []changes.Change) string {
	var b strings.Builder
	for _, c := range changed {
		fmt.Fprintf(&b, " %s %s/%s@%d=%s", c.Resource.Resource, c.Namespace, c.Name, c.Revision, c.Value)
		if c.Value == nil {
			b.WriteString("nil")
		}
	}
	return b.String()
}

// transformer decrypts values that are not encrypted, fails for "bad" until the key is
// restored, and for "later" until it has failed twice.
type transformer struct {
	outages  atomic.Int32
	restored atomic.Bool
}

func (t *transformer) TransformFromStorage(_ context.Context, data []byte, _ value.Context) ([]byte, bool, error) {
	switch {
	case string(data) == "bad" && !t.restored.Load():
		return nil, false, errors.New("the key is missing")
	case string(data) == "later" && t.outages.Add(1) < 2:
		return nil, false, status.Error(codes.Unavailable, "the key service does not answer")
	}
	return data, false, nil
}

func (*transformer) TransformToStorage(_ context.Context, data []byte, _ value.Context) ([]byte, error) {
	return data, nil
}

// newFeed returns a feed of two resources, with another between their keys.
func newFeed(client *clientv3.Client) (*changes.Feed, chan string) {
	return newFeedOf(client, &transformer{})
}

func newFeedOf(client *clientv3.Client, t value.Transformer) (*changes.Feed, chan string) {
	lines := make(chan string, 100)
	feed := changes.NewFeed(recorder{lines})
	source := changes.Source{
		Connect:  func() (*clientv3.Client, func(), error) { return client, func() {}, nil },
		BeginKey: "/begin",
	}
	for _, name := range []string{"c", "a"} {
		source.Resources = append(source.Resources, stored.Resource{
			GroupResource: schema.GroupResource{Resource: name}, Prefix: "/r/" + name + "/", Transformer: t,
		})
	}
	feed.SetSource(source)
	return feed, lines
}

// run runs the feed until the returned function is called.
func run(t *testing.T, feed *changes.Feed) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = feed.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

func put(t *testing.T, client *clientv3.Client, pairs ...string) int64 {
	t.Helper()
	var operations []clientv3.Op
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			operations = append(operations, clientv3.OpDelete(pairs[i]))
		} else {
			operations = append(operations, clientv3.OpPut(pairs[i], pairs[i+1]))
		}
	}
	response, err := client.Txn(t.Context()).Then(operations...).Commit()
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

func want(t *testing.T, lines chan string, format string, args ...any) {
	t.Helper()
	select {
	case got := <-lines:
		if want := fmt.Sprintf(format, args...); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	case <-t.Context().Done():
		t.Fatal("nothing was sent")
	}
}

// TestFeed checks that the changes of all resources are sent in the order of their
// revisions, and all of a revision together.
func TestFeed(t *testing.T) {
	client := storagetest.StartEmbedded(t).Client()
	put(t, client, "/r/a/n/x", "1", "/r/b/n/x", "1", "/other", "1")
	begin := put(t, client, "/r/c/y", "2")
	feed, lines := newFeed(client)
	stop := run(t, feed)
	want(t, lines, "reset %d: c /y@%d=2 a n/x@%d=1", begin, begin, begin-1)

	for i := range 5 {
		r := put(t, client, "/r/c/y", fmt.Sprint(i))
		want(t, lines, "apply %d: c /y@%d=%d", r, r, i)
		r = put(t, client, "/r/a/n/x", "", "/r/b/n/x", "x", "/r/c/z", "3")
		want(t, lines, "apply %d: a n/x@%d=nil c /z@%d=3", r, r, r)
		r = put(t, client, "/r/a/n/x", "4")
		want(t, lines, "apply %d: a n/x@%d=4", r, r)
	}

	// It continues where it was.
	stop()
	missed := put(t, client, "/r/a/n/x", "5")
	stop = run(t, feed)
	want(t, lines, "apply %d: a n/x@%d=5", missed, missed)

	// If that was compacted, it begins again.
	stop()
	put(t, client, "/r/a/n/x", "6")
	last := put(t, client, "/r/c/z", "", "/r/c/y", "7")
	if _, err := client.Compact(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	run(t, feed)
	want(t, lines, "reset %d: c /y@%d=7 a n/x@%d=6", last, last, last-1)
}

// interruptedKV calls a function after the first read.
type interruptedKV struct {
	clientv3.KV
	after func() error
}

func (kv *interruptedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	response, err := kv.KV.Get(ctx, key, opts...)
	if after := kv.after; err == nil && after != nil {
		kv.after = nil
		err = after()
	}
	return response, err
}

// TestListPages lists more objects than are read at once. After the first read, the last
// object is deleted and another one created: all reads must be of one revision.
func TestListPages(t *testing.T) {
	client := storagetest.StartEmbedded(t).Client()
	var pairs []string
	for i := range 5001 {
		pairs = append(pairs, fmt.Sprintf("/r/a/n/%04d", i), "1")
	}
	var begin int64
	var objects strings.Builder
	for chunk := range slices.Chunk(pairs, 200) {
		begin = put(t, client, chunk...)
		for i := 0; i < len(chunk); i += 2 {
			fmt.Fprintf(&objects, " a n/%s@%d=1", path.Base(chunk[i]), begin)
		}
	}
	kv := client.KV
	client.KV = &interruptedKV{kv, func() error {
		_, err := kv.Txn(t.Context()).Then(clientv3.OpDelete("/r/a/n/5000"), clientv3.OpPut("/r/a/n/late", "1")).Commit()
		return err
	}}
	feed, lines := newFeed(client)
	run(t, feed)
	ends := func(line string) string {
		return fmt.Sprintf("%d objects: %.30s ...%s", strings.Count(line, "="), line, line[len(line)-30:])
	}
	if got, want := <-lines, fmt.Sprintf("reset %d:%s", begin, objects.String()); got != want {
		t.Errorf("got  %s\nwant %s", ends(got), ends(want))
	}
	changed := begin + 1
	want(t, lines, "apply %d: a n/5000@%d=nil a n/late@%d=1", changed, changed, changed)
}

// TestBeginWithWrite checks that a feed lists at revisions that no process has seen: when it
// begins, and when etcd has compacted what it has missed.
func TestBeginWithWrite(t *testing.T) {
	client := storagetest.StartEmbedded(t).Client()
	first := put(t, client, "/r/c/y", "1")
	feed, lines := newFeed(client)
	feed.BeginWithWrite()
	stop := run(t, feed)
	want(t, lines, "reset %d: c /y@%d=1", first+1, first)
	stop()
	put(t, client, "/r/c/y", "2")
	last := put(t, client, "/r/c/y", "3")
	if _, err := client.Compact(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	run(t, feed)
	want(t, lines, "reset %d: c /y@%d=3", last+1, last)
}

// TestBeginWithWriteWhenFull checks that a feed that begins with a write does not list, at a
// revision that a process may have seen, while etcd has no space for it.
func TestBeginWithWriteWhenFull(t *testing.T) {
	client := storagetest.StartEmbedded(t, func(c *embedded.Config) { c.QuotaBytes = storagetest.SmallQuota }).Client()
	storagetest.Fill(t, client)
	feed, lines := newFeed(client)
	feed.BeginWithWrite()
	run(t, feed)
	select {
	case line := <-lines:
		t.Errorf("got %s", line)
	case <-time.After(500 * time.Millisecond): // several attempts
	}
}

// TestAwait checks that a feed reaches a revision at which none of its resources has
// changed.
func TestAwait(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) *clientv3.Client{
		"embedded": func(t *testing.T) *clientv3.Client { return storagetest.StartEmbedded(t).Client() },
		"gRPC":     func(t *testing.T) *clientv3.Client { return storagetest.NewClient(t, storagetest.StartGRPC(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			client := start(t)
			feed, lines := newFeed(client)
			run(t, feed)
			<-lines
			for i := range 20 {
				outside := put(t, client, "/other", fmt.Sprint(i))
				current, err := feed.Current(t.Context())
				if err != nil || current != outside {
					t.Fatalf("the current revision is %d, %v, want %d", current, err, outside)
				}
				if err := feed.Await(t.Context(), current); err != nil || feed.Revision() != current {
					t.Errorf("reached %d, %v, want %d", feed.Revision(), err, current)
				}
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := feed.Await(ended, 1000); err == nil {
				t.Error("reached a revision that there is not")
			}
		})
	}
}

// TestUnreadable checks that an object that cannot be decrypted is sent without a
// value, and that one is waited for whose key service does not answer.
func TestUnreadable(t *testing.T) {
	client := storagetest.StartEmbedded(t).Client()
	begin := put(t, client, "/r/a/n/x", "bad", "/r/a/n/y", "later")
	feed, lines := newFeed(client)
	run(t, feed)
	want(t, lines, "reset %d: a n/y@%d=later", begin, begin)
	r := put(t, client, "/r/a/n/y", "bad")
	want(t, lines, "apply %d: a n/y@%d=nil", r, r)
}

// TestRestoredKey checks that objects are sent when they can be decrypted again, also
// those that the feed has listed before, and at a higher revision than before.
func TestRestoredKey(t *testing.T) {
	t.Parallel() // it waits for an interval
	client := storagetest.StartEmbedded(t).Client()
	first := put(t, client, "/r/a/n/w", "bad", "/r/a/n/x", "bad", "/r/a/n/y", "bad")
	keys := &transformer{}
	feed, lines := newFeedOf(client, keys)
	stop := run(t, feed)
	want(t, lines, "reset %d:", first)
	second := put(t, client, "/r/c/z", "bad", "/r/a/n/x", "", "/r/a/n/y", "good")
	want(t, lines, "apply %d: c /z@%d=nil a n/x@%d=nil a n/y@%d=good", second, second, second, second)

	keys.restored.Store(true)
	want(t, lines, "reset %d: c /z@%d=bad a n/w@%d=bad a n/y@%d=good", second+1, second, first, second)
	third := put(t, client, "/r/a/n/y", "")
	want(t, lines, "apply %d: a n/y@%d=nil", third, third)

	// An interruption is no reason to list again, and to write.
	stop()
	run(t, feed)
	fourth := put(t, client, "/r/a/n/y", "good")
	want(t, lines, "apply %d: a n/y@%d=good", fourth, fourth)
}

// TestRestoredKeyWhenFull checks that objects are sent when they can be decrypted again and
// etcd has no space for the write before the list.
func TestRestoredKeyWhenFull(t *testing.T) {
	t.Parallel() // it waits for an interval
	client := storagetest.StartEmbedded(t, func(c *embedded.Config) { c.QuotaBytes = storagetest.SmallQuota }).Client()
	first := put(t, client, "/r/a/n/x", "bad")
	keys := &transformer{}
	feed, lines := newFeedOf(client, keys)
	run(t, feed)
	want(t, lines, "reset %d:", first)

	storagetest.Fill(t, client)
	full, err := client.Get(t.Context(), "/fill")
	if err != nil {
		t.Fatal(err)
	}
	keys.restored.Store(true)
	want(t, lines, "reset %d: a n/x@%d=bad", full.Header.Revision, first)
}

// TestKeyServiceHangs checks that changes are sent while the feed tries to decrypt a value
// again and the key service does not answer.
func TestKeyServiceHangs(t *testing.T) {
	t.Parallel() // it waits for an interval
	client := storagetest.StartEmbedded(t).Client()
	first := put(t, client, "/r/a/n/x", "bad")
	keys := &hangingTransformer{hangs: make(chan struct{})}
	feed, lines := newFeedOf(client, keys)
	run(t, feed)
	want(t, lines, "reset %d:", first)
	select {
	case <-keys.hangs:
	case <-t.Context().Done():
		t.Fatal("it was not tried again")
	}
	second := put(t, client, "/r/a/n/y", "good")
	want(t, lines, "apply %d: a n/y@%d=good", second, second)
}

// hangingTransformer fails to decrypt "bad", and when that is tried again, its key service
// does not answer.
type hangingTransformer struct {
	transformer
	tried atomic.Bool
	hangs chan struct{}
}

func (t *hangingTransformer) TransformFromStorage(ctx context.Context, data []byte, v value.Context) ([]byte, bool, error) {
	if string(data) == "bad" && t.tried.Swap(true) {
		close(t.hangs)
		<-ctx.Done()
		return nil, false, ctx.Err()
	}
	return t.transformer.TransformFromStorage(ctx, data, v)
}
