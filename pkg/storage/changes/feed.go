// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/borough-io/borough/pkg/await"
	"github.com/borough-io/borough/pkg/storage/etcdwatch"
	"github.com/borough-io/borough/pkg/storage/unreadable"
)

const (
	// pageSize is how many objects are read at once.
	pageSize = 5000
	// progressInterval is how often etcd is asked for progress that a caller waits
	// for. It answers at once, but not at all while the watch is catching up.
	progressInterval = 20 * time.Millisecond
	// idleInterval is how often etcd is asked for progress otherwise, so that the
	// revision of the sink does not become too old to watch from.
	idleInterval = time.Minute
	// decryptInterval is the delay before another attempt to decrypt a value with a key
	// service that does not answer.
	decryptInterval = time.Second
	// resetInterval is how long there must be no interruption so that the delay after the
	// next one is short again.
	resetInterval = time.Minute
)

// errReadable ends a watch when a value can be decrypted again.
var errReadable = errors.New("objects that could not be decrypted can be decrypted again")

// Feed sends what it reads from a source to a sink.
type Feed struct {
	sink    Sink
	source  Source
	client  atomic.Pointer[clientv3.Client]
	watcher atomic.Pointer[clientv3.Watcher] // of the watch, or nil
	reached await.Revision
	// waiting is how many callers wait for a revision.
	waiting atomic.Int64
	// requesting is whether a request for progress has not been sent yet.
	requesting atomic.Bool
	// begin is whether Run writes before it reads.
	begin bool
	// unread has the keys whose values could not be decrypted, with their revisions. When
	// an encryption key is restored, there is no event in etcd.
	unread map[string]int64
	// readable is set when one of them can be decrypted, until Reset has it.
	readable bool
}

// NewFeed returns a feed to a sink. It needs a source before it runs.
func NewFeed(sink Sink) *Feed { return &Feed{sink: sink, unread: map[string]int64{}} }

// BeginWithWrite makes Run write a key before it reads. So the first revision of the
// sink is higher than any that a process has seen before.
func (f *Feed) BeginWithWrite() { f.begin = true }

// SetSource sets the source. It has to be called before Run.
func (f *Feed) SetSource(source Source) { f.source = source }

// Revision returns the revision that the sink has reached, or 0 before its first Reset.
func (f *Feed) Revision() int64 { return f.reached.Get() }

// Decoded passes an object that the server has decoded to the sink.
func (f *Feed) Decoded(obj runtime.Object) { f.sink.Decoded(obj) }

// Deleted passes an object that was deleted to the sink.
func (f *Feed) Deleted(obj runtime.Object) { f.sink.Deleted(obj) }

// Current returns the current revision of etcd.
func (f *Feed) Current(ctx context.Context) (int64, error) { return f.current(ctx) }

// currentOfAny returns the current revision of etcd. Reads of several keys are not sent to the
// leader, but to each member in turn.
func (f *Feed) currentOfAny(ctx context.Context) (int64, error) {
	first, _ := f.source.keys()
	return f.current(ctx, clientv3.WithRange(first+"\x00"))
}

func (f *Feed) current(ctx context.Context, options ...clientv3.OpOption) (int64, error) {
	client := f.client.Load()
	if client == nil {
		return 0, errors.New("the feed of changes does not run yet")
	}
	first, _ := f.source.keys()
	response, err := client.Get(ctx, first, options...) // no object has this key
	if err != nil {
		return 0, fmt.Errorf("read the current revision of etcd: %w", err)
	}
	return response.Header.Revision, nil
}

// Await waits until the sink has reached a revision, for which it asks etcd. It
// returns the error of the context if it ends before.
func (f *Feed) Await(ctx context.Context, revision int64) error {
	f.waiting.Add(1)
	defer f.waiting.Add(-1)
	for f.reached.Get() < revision {
		f.requestProgress(ctx)
		attempt, cancel := context.WithTimeout(ctx, progressInterval)
		_ = f.reached.Await(attempt, revision)
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// requestProgress asks etcd for progress, unless it is being asked: a request that has not
// been sent yet serves all.
func (f *Feed) requestProgress(ctx context.Context) {
	watcher := f.watcher.Load()
	if watcher == nil || !f.requesting.CompareAndSwap(false, true) {
		return
	}
	// In the background, because the request blocks while the stream is broken.
	go func() {
		defer f.requesting.Store(false)
		_ = (*watcher).RequestProgress(streamContext(ctx))
	}()
}

// streamContext returns the context of the stream of the feed's watch, which is that of all
// requests of its watcher. A member that has lost the others ends the stream: it would not send
// what they write.
func streamContext(ctx context.Context) context.Context {
	return clientv3.WithRequireLeader(metadata.NewOutgoingContext(ctx, nil))
}

// Run follows the source until the context ends.
func (f *Feed) Run(ctx context.Context) error {
	if err := f.source.check(); err != nil {
		return err
	}
	client, release, err := f.source.Connect()
	if err != nil {
		return fmt.Errorf("connect the feed of changes: %w", err)
	}
	defer release()
	f.client.Store(client)
	defer f.client.Store(nil)
	delay := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 8, Cap: 2 * time.Second}.DelayWithReset(clock.RealClock{}, resetInterval)
	return delay.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		began := f.reached.Get()
		err := f.follow(ctx, client)
		if ctx.Err() == nil {
			klog.FromContext(ctx).Info("The watch of etcd was interrupted, will retry", "revision", f.reached.Get(), "progress", f.reached.Get() > began, "err", err)
		}
		return false, nil
	})
}

// follow continues where the sink is, or lists the objects if it has no revision yet, more
// of them can be decrypted, or etcd has compacted what follows. It ends with an error.
func (f *Feed) follow(ctx context.Context, client *clientv3.Client) error {
	if f.reached.Get() == 0 || f.readable {
		if err := f.relist(ctx, client); err != nil {
			return err
		}
	}
	err := f.watch(ctx, client)
	if errors.Is(err, rpctypes.ErrCompacted) {
		if err := f.relist(ctx, client); err != nil {
			return err
		}
		err = f.watch(ctx, client)
	}
	return fmt.Errorf("watch: %w", err)
}

// relist lists the objects at a new revision, if the sink could have got others at the
// current one: before, or in another process.
func (f *Feed) relist(ctx context.Context, client *clientv3.Client) error {
	if f.begin || f.readable {
		_, err := client.Put(ctx, f.source.BeginKey, "")
		if f.reached.Get() > 0 && errors.Is(err, rpctypes.ErrNoSpace) {
			klog.FromContext(ctx).Error(err, "Objects or rights that have changed may not be in lists at the current revision")
		} else if err != nil {
			return fmt.Errorf("write %s: %w", f.source.BeginKey, err)
		}
	}
	if err := f.list(ctx, client); err != nil {
		return fmt.Errorf("list objects: %w", err)
	}
	return nil
}

// list sends all objects at one revision to the sink.
func (f *Feed) list(ctx context.Context, client *clientv3.Client) error {
	var objects []Change
	var revision int64
	for i := range f.source.Resources {
		prefix := f.source.Resources[i].Prefix
		end := clientv3.GetPrefixRangeEnd(prefix)
		for key := prefix; ; {
			page, err := client.Get(ctx, key, clientv3.WithRange(end), clientv3.WithLimit(pageSize), clientv3.WithRev(revision))
			if err != nil {
				return err
			}
			if revision == 0 {
				revision = page.Header.Revision
			}
			objects = slices.Grow(objects, int(page.Count)) // what is left of the resource
			for _, kv := range page.Kvs {
				change, ok, err := f.change(ctx, kv, false)
				if err != nil {
					return err
				}
				if ok && change.Value != nil {
					objects = append(objects, change)
				}
			}
			if !page.More {
				break
			}
			key = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
		}
	}
	f.sink.Reset(revision, slices.Values(objects))
	f.readable = false
	f.reached.Reach(revision)
	return nil
}

// watch sends changes to the sink until the watch fails.
func (f *Feed) watch(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.NewTicker(idleInterval)
	defer idle.Stop()
	examine := time.NewTicker(unreadable.ExamineInterval)
	defer examine.Stop()
	var examined <-chan examination // nil while none runs
	lag := newLag(f)
	defer lag.stop()
	watcher := etcdwatch.Open(ctx, client)
	f.watcher.Store(&watcher)
	defer f.watcher.Store(nil)
	// In the background, because a member that hangs does not confirm the watch.
	opened := make(chan clientv3.WatchChan, 1)
	go func() {
		first, end := f.source.keys()
		opened <- watcher.Watch(streamContext(ctx), first, clientv3.WithRange(end), clientv3.WithRev(f.reached.Get()+1), clientv3.WithProgressNotify())
	}()
	var responses clientv3.WatchChan
	for {
		select {
		case responses = <-opened:
		case response, ok := <-responses:
			if !ok {
				return errors.New("etcd has closed it")
			}
			if err := response.Err(); err != nil {
				return err
			}
			if err := f.send(ctx, &response); err != nil {
				return err
			}
		case <-idle.C:
			f.requestProgress(ctx)
		case <-lag.ticker.C:
			if lag.exists() {
				return errLag
			}
			lag.ask(ctx)
		case confirmed := <-lag.confirmed:
			lag.set(ctx, confirmed)
		case <-examine.C:
			if examined == nil && len(f.unread) > 0 {
				examined = f.examine(ctx, client)
			}
		case result := <-examined:
			examined = nil
			result.forget(f.unread)
			if result.readable {
				f.readable = true
				return errReadable
			}
		}
	}
}

// send sends the changes of a response to the sink.
func (f *Feed) send(ctx context.Context, response *clientv3.WatchResponse) error {
	if response.IsProgressNotify() {
		if revision := response.Header.Revision; revision > f.reached.Get() {
			f.sink.Advance(revision)
			f.reached.Reach(revision)
		}
		return nil
	}
	for events := response.Events; len(events) > 0; {
		revision := events[0].Kv.ModRevision
		var changes []Change
		for len(events) > 0 && events[0].Kv.ModRevision == revision {
			change, ok, err := f.change(ctx, events[0].Kv, events[0].Type == clientv3.EventTypeDelete)
			if err != nil {
				return err
			}
			if ok {
				changes = append(changes, change)
			}
			events = events[1:]
		}
		if len(changes) > 0 {
			f.sink.Apply(revision, changes)
		} else {
			f.sink.Advance(revision)
		}
		f.reached.Reach(revision)
	}
	return nil
}

// change returns the change of a key, and false if it is of none of the resources. It
// returns an error only if the context ends.
func (f *Feed) change(ctx context.Context, kv *mvccpb.KeyValue, deleted bool) (Change, bool, error) {
	resource, namespace, name, ok := f.source.split(string(kv.Key))
	if !ok {
		return Change{}, false, nil
	}
	change := Change{Resource: resource, Namespace: namespace, Name: name, Revision: kv.ModRevision}
	delete(f.unread, string(kv.Key))
	if deleted {
		return change, true, nil
	}
	for {
		value, err := resource.Decrypt(ctx, kv)
		switch {
		case err == nil:
			change.Value = value
			return change, true, nil
		case ctx.Err() != nil:
			return Change{}, false, context.Cause(ctx)
		case !unreadable.IsOutage(err):
			// The stores of the resource log and count what cannot be read.
			f.unread[string(kv.Key)] = kv.ModRevision
			return change, true, nil
		}
		klog.FromContext(ctx).Info("A stored object cannot be decrypted now, will retry", "resource", resource.GroupResource, "namespace", namespace, "name", name, "err", err)
		select {
		case <-time.After(decryptInterval):
		case <-ctx.Done():
		}
	}
}
