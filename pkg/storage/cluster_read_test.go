// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// scriptedKV answers each read after a time, or when the context ends.
type scriptedKV struct {
	clientv3.KV
	reads   *atomic.Int64
	answers []scriptedRead
}

type scriptedRead struct {
	after time.Duration
	err   error
}

func (kv scriptedKV) Get(ctx context.Context, _ string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	answer := kv.answers[kv.reads.Add(1)-1]
	select {
	case <-time.After(answer.after):
		return &clientv3.GetResponse{}, answer.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestProbeOfTwoMembers probes a cluster of which members hang, with a timeout of two seconds.
func TestProbeOfTwoMembers(t *testing.T) {
	failure := errors.New("no connection")
	const hangs = time.Hour
	for name, test := range map[string]struct {
		answers []scriptedRead
		want    error
		after   time.Duration
		reads   int64
	}{
		"answers":                    {[]scriptedRead{{0, nil}}, nil, 0, 1},
		"fails":                      {[]scriptedRead{{0, failure}, {0, failure}}, failure, 0, 2},
		"one fails":                  {[]scriptedRead{{0, failure}, {0, nil}}, nil, 0, 2},
		"one fails late":             {[]scriptedRead{{1500 * time.Millisecond, failure}, {900 * time.Millisecond, nil}}, nil, 1900 * time.Millisecond, 2},
		"is slow":                    {[]scriptedRead{{1900 * time.Millisecond, nil}, {hangs, nil}}, nil, 1900 * time.Millisecond, 2},
		"one hangs":                  {[]scriptedRead{{hangs, nil}, {0, nil}}, nil, time.Second, 2},
		"one hangs, the other fails": {[]scriptedRead{{hangs, nil}, {0, failure}}, context.DeadlineExceeded, 2 * time.Second, 2},
		"both hang":                  {[]scriptedRead{{hangs, nil}, {hangs, nil}}, context.DeadlineExceeded, 2 * time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				kv := scriptedKV{reads: &atomic.Int64{}, answers: test.answers}
				client := clientv3.NewCtxClient(ctx)
				client.KV = kv
				began := time.Now()
				err := (&cluster{}).read(ctx, client, time.Second)
				if took := time.Since(began); !errors.Is(err, test.want) || took != test.after || kv.reads.Load() != test.reads {
					t.Errorf("got %v after %s and %d reads, want %v after %s and %d", err, took, kv.reads.Load(), test.want, test.after, test.reads)
				}
			})
		})
	}
}
