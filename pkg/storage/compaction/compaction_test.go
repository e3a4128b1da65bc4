// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/embedded/embeddedtest"
)

const quotaBytes = 256 << 20

func startMember(t *testing.T) *embedded.Server {
	t.Helper()
	return embeddedtest.Start(t, func(c *embedded.Config) { c.QuotaBytes, c.Ephemeral = quotaBytes, true })
}

// newCompactor returns the compactor of one of the servers of a member.
func newCompactor(member *embedded.Server) *Compactor {
	return New(Config{Client: member.Client(), Status: member.Status, Meter: NewMeter(), Interval: time.Hour})
}

// putSmall puts many keys, which make each compaction of etcd slow.
func putSmall(t *testing.T, client *clientv3.Client) {
	t.Helper()
	for i := range 300 {
		var ops []clientv3.Op
		for j := range 100 {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("small-%d-%d", i, j), "value"))
		}
		if _, err := client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHistoryLeavesSpace writes one large value three times as often as the space quota of etcd
// allows without compaction, while servers compact.
func TestHistoryLeavesSpace(t *testing.T) {
	value := string(bytes.Repeat([]byte("v"), 1<<20))
	const writes = 3 * quotaBytes >> 20
	for name, servers := range map[string]int{"no server": 0, "a server": 1, "two servers": 2} {
		t.Run(name, func(t *testing.T) {
			member := startMember(t)
			client := member.Client()
			if _, err := client.Put(t.Context(), "other", "value"); err != nil {
				t.Fatal(err)
			}
			putSmall(t, client)
			var compactors []*Compactor
			for range servers {
				compactors = append(compactors, newCompactor(member))
			}
			for i := range writes {
				response, err := client.Put(t.Context(), "large", value)
				if errors.Is(err, rpctypes.ErrNoSpace) && servers == 0 {
					return
				}
				if err != nil {
					t.Fatalf("write %d: %v", i, err)
				}
				if servers == 0 {
					continue
				}
				// As Run does, but before the next write.
				c := compactors[i%servers]
				c.Meter.Add(len(value))
				select {
				case <-c.Meter.check:
					if err := c.checkSpace(t.Context()); err != nil {
						t.Fatal(err)
					}
				default:
				}
				// What was written since the check before is kept.
				if _, err := client.Get(t.Context(), "other", clientv3.WithRev(response.Header.Revision-1)); err != nil {
					t.Fatalf("read at the revision before write %d: %v", i, err)
				}
			}
			if servers == 0 {
				t.Fatal("etcd is not full without compaction")
			}
			if got, err := client.Get(t.Context(), "other"); err != nil || string(got.Kvs[0].Value) != "value" {
				t.Errorf("got %v, %v, want the value of another key", got, err)
			}
		})
	}
}

// TestHistoryIsKept shows that nothing is compacted early while less than half of the space is in
// use.
func TestHistoryIsKept(t *testing.T) {
	member := startMember(t)
	c := newCompactor(member)
	first, err := c.Client.Put(t.Context(), "key", "value")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.Meter.Add(2 * unknownStep)
		if err := c.checkSpace(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Client.Put(t.Context(), "key", "value"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Client.Get(t.Context(), "key", clientv3.WithRev(first.Header.Revision)); err != nil {
		t.Errorf("read at the first revision: %v", err)
	}
}

// TestNoQuota shows that an etcd without a limit is not compacted early.
func TestNoQuota(t *testing.T) {
	member := startMember(t)
	for _, quota := range []int64{-1, 0} {
		c := newCompactor(member)
		c.Status = func(ctx context.Context) (*clientv3.StatusResponse, error) {
			status, err := member.Status(ctx)
			status.DbSizeQuota = quota
			return status, err
		}
		for range 3 {
			first, err := c.Client.Put(t.Context(), "key", "value")
			if err != nil {
				t.Fatal(err)
			}
			c.Meter.Add(2 * unknownStep)
			if err := c.checkSpace(t.Context()); err != nil {
				t.Fatal(err)
			}
			if left := c.Meter.left.Load(); left != unknownStep {
				t.Errorf("the next check is after %d bytes, want %d", left, unknownStep)
			}
			if _, err := c.Client.Get(t.Context(), "key", clientv3.WithRev(first.Header.Revision-1)); err != nil {
				t.Errorf("read at an earlier revision: %v", err)
			}
		}
	}
}

// TestWritesDuringCheck shows that what is written during a check does not start the next one.
func TestWritesDuringCheck(t *testing.T) {
	member := startMember(t)
	c := newCompactor(member)
	checks := 0
	c.Status = func(ctx context.Context) (*clientv3.StatusResponse, error) {
		checks++
		c.Meter.Add(2 * unknownStep)
		return member.Status(ctx)
	}
	c.Meter.Add(2 * unknownStep)
	for range 2 {
		<-c.Meter.check
		if err := c.checkSpace(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if checks != 1 {
		t.Errorf("%d checks, want 1", checks)
	}
}

// TestPermissionDenied shows that a user of etcd who may not read its status does not fill the log.
func TestPermissionDenied(t *testing.T) {
	c := newCompactor(startMember(t))
	c.Status = func(context.Context) (*clientv3.StatusResponse, error) {
		return nil, rpctypes.ErrGRPCPermissionDenied
	}
	for i := range 3 {
		c.Meter.Add(2 * unknownStep)
		if err := c.checkSpace(t.Context()); (err != nil) != (i == 0) {
			t.Errorf("check %d: %v, want an error only from the first one", i, err)
		}
	}
}

// TestIntervals compacts at the end of intervals, alone and in turns with another server.
func TestIntervals(t *testing.T) {
	member := startMember(t)
	a, b := newCompactor(member), newCompactor(member)
	client := member.Client()
	var revisions []int64
	// end ends an interval of a server, and checks which is the last of the revisions that are
	// compacted, -1 if none is.
	end := func(c *Compactor, compacted int) {
		t.Helper()
		response, err := client.Put(t.Context(), "key", strconv.Itoa(len(revisions)))
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, response.Header.Revision)
		if err := c.compactDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, revision := range revisions {
			_, err := client.Get(t.Context(), "key", clientv3.WithRev(revision))
			if got, want := errors.Is(err, rpctypes.ErrCompacted), i <= compacted; got != want {
				t.Errorf("after %d writes: read of the revision of write %d: %v, want compacted: %t", len(revisions), i, err, want)
			}
		}
	}
	end(a, -1)
	end(a, 0)
	end(b, 0) // it learns when a has compacted
	end(b, 1)
	end(a, 1) // it learns when b has compacted
	if a.CompactRevision() != b.CompactRevision() {
		t.Errorf("the servers know that the history is compacted up to %d and %d", a.CompactRevision(), b.CompactRevision())
	}
	end(a, 3)
	if got := a.CompactRevision(); got <= revisions[3] || got > revisions[4] {
		t.Errorf("compacted up to %d, want the revision of the end of the interval, %v", got, revisions)
	}
}

// silentKV does not answer a number of transactions.
type silentKV struct {
	clientv3.KV
	unanswered int
}

func (kv *silentKV) Txn(ctx context.Context) clientv3.Txn {
	kv.unanswered--
	if kv.unanswered < 0 {
		return kv.KV.Txn(ctx)
	}
	return silentTxn{kv.KV.Txn(ctx)}
}

type silentTxn struct{ clientv3.Txn }

func (t silentTxn) If(compare ...clientv3.Cmp) clientv3.Txn { return silentTxn{t.Txn.If(compare...)} }
func (t silentTxn) Then(ops ...clientv3.Op) clientv3.Txn    { return silentTxn{t.Txn.Then(ops...)} }
func (t silentTxn) Else(ops ...clientv3.Op) clientv3.Txn    { return silentTxn{t.Txn.Else(ops...)} }
func (t silentTxn) Commit() (*clientv3.TxnResponse, error) {
	return nil, status.Error(codes.Unavailable, "the connection was closed")
}

// TestConnectionIsLost shows that compaction continues if a firewall drops idle connections for less
// than the interval: the first request of each interval fails.
func TestConnectionIsLost(t *testing.T) {
	member := startMember(t)
	c := newCompactor(member)
	kv := &silentKV{KV: c.Client.KV}
	c.Client.KV = kv
	first, err := c.Client.Put(t.Context(), "key", "value")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		kv.unanswered = 1
		if err := c.compactDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Client.Put(t.Context(), "key", "value"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Client.Get(t.Context(), "key", clientv3.WithRev(first.Header.Revision)); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("read at the first revision: %v, want %v", err, rpctypes.ErrCompacted)
	}
}

// TestRunEnds runs a compactor whose etcd does not answer.
func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := make(chan struct{})
	c := New(Config{Interval: time.Hour, Meter: NewMeter(), Status: func(ctx context.Context) (*clientv3.StatusResponse, error) {
		close(asked)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	c.Meter.Add(2 * unknownStep)
	<-asked
	cancel()
	<-done
}
