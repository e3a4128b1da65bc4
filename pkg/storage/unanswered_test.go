// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// flaky is a key that writes reach as its outages say.
type flaky struct {
	kubernetes.Interface
	kv       *mvccpb.KeyValue // nil if the key does not exist
	revision int64
	outages  []outage // of the writes to come
	writes   int
}

// outage is what goes wrong with a write.
type outage struct {
	err error
	// carriedOut says that only the answer was lost.
	carriedOut bool
	// meanwhile happens before the next one.
	meanwhile func(*flaky)
}

func (f *flaky) put(value string) {
	f.revision++
	f.kv = &mvccpb.KeyValue{Value: []byte(value), ModRevision: f.revision}
}

func (f *flaky) write(expected int64, carryOut func()) (succeeded bool, kv *mvccpb.KeyValue, err error) {
	var now outage
	if f.writes++; len(f.outages) > 0 {
		now, f.outages = f.outages[0], f.outages[1:]
	}
	var current int64
	if f.kv != nil {
		current = f.kv.ModRevision
	}
	kv = f.kv
	if succeeded = current == expected; succeeded && (now.err == nil || now.carriedOut) {
		carryOut()
	}
	if now.meanwhile != nil {
		now.meanwhile(f)
	}
	return succeeded, kv, now.err
}

func (f *flaky) OptimisticPut(_ context.Context, _ string, value []byte, expected int64, _ kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	succeeded, kv, err := f.write(expected, func() { f.put(string(value)) })
	if err != nil {
		return kubernetes.PutResponse{}, err
	}
	response := kubernetes.PutResponse{Succeeded: succeeded, Revision: f.revision}
	if !succeeded {
		response.KV = kv
	}
	return response, nil
}

func (f *flaky) OptimisticDelete(_ context.Context, _ string, expected int64, _ kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	succeeded, kv, err := f.write(expected, func() { f.revision, f.kv = f.revision+1, nil })
	if err != nil {
		return kubernetes.DeleteResponse{}, err
	}
	response := kubernetes.DeleteResponse{Succeeded: succeeded, Revision: f.revision}
	if !succeeded {
		response.KV = kv
	}
	return response, nil
}

var errAborted = errors.New("aborted")

func TestDecided(t *testing.T) {
	timedOut := rpctypes.Error(rpctypes.ErrGRPCTimeoutDueToLeaderFail)
	cutOff := status.Error(codes.Unavailable, "keepalive ping failed to receive ACK within timeout")
	byAnother := func(f *flaky) { f.put("another") }
	gone := func(f *flaky) { f.revision, f.kv = f.revision+1, nil }
	type result struct {
		succeeded bool
		revision  int64
		err       error
		writes    int
	}
	const expected = 7
	for name, test := range map[string]struct {
		outages     []outage
		put, delete result
	}{
		"answered at once":              {nil, result{true, 8, nil, 1}, result{true, 8, nil, 1}},
		"not carried out":               {[]outage{{err: timedOut}}, result{true, 8, nil, 2}, result{true, 8, nil, 2}},
		"carried out":                   {[]outage{{err: cutOff, carriedOut: true}}, result{true, 8, nil, 2}, result{true, 8, nil, 2}},
		"unanswered twice":              {[]outage{{err: cutOff}, {err: timedOut, carriedOut: true}}, result{true, 8, nil, 3}, result{true, 8, nil, 3}},
		"changed by another":            {[]outage{{err: timedOut, meanwhile: byAnother}}, result{false, 0, timedOut, 2}, result{false, 8, nil, 2}},
		"carried out, and then changed": {[]outage{{err: timedOut, carriedOut: true, meanwhile: byAnother}}, result{false, 0, timedOut, 2}, result{false, 9, nil, 2}},
		"deleted by another":            {[]outage{{err: timedOut, meanwhile: gone}}, result{false, 0, timedOut, 2}, result{true, 8, nil, 2}},
		"an error that is an answer":    {[]outage{{err: errAborted}}, result{false, 0, errAborted, 1}, result{false, 0, errAborted, 1}},
		"no room, which is an answer": {[]outage{{err: rpctypes.Error(rpctypes.ErrGRPCNoSpace)}},
			result{false, 0, rpctypes.ErrNoSpace, 1}, result{false, 0, rpctypes.ErrNoSpace, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			start := func() *flaky {
				return &flaky{revision: expected, kv: &mvccpb.KeyValue{Value: []byte("before"), ModRevision: expected}, outages: test.outages}
			}
			inner := start()
			put, err := decided{Interface: inner}.OptimisticPut(t.Context(), "key", []byte("value"), expected, kubernetes.PutOptions{})
			if got := (result{put.Succeeded, put.Revision, err, inner.writes}); got != test.put {
				t.Errorf("put: got %+v, want %+v", got, test.put)
			}
			inner = start()
			deleted, err := decided{Interface: inner}.OptimisticDelete(t.Context(), "key", expected, kubernetes.DeleteOptions{})
			if got := (result{deleted.Succeeded, deleted.Revision, err, inner.writes}); got != test.delete {
				t.Errorf("delete: got %+v, want %+v", got, test.delete)
			}
		})
	}
}

// TestDecidedEndsEpoch before it tries a create again, and not for anything else.
func TestDecidedEndsEpoch(t *testing.T) {
	for expected, want := range map[int64]int{0: 3, 7: 0} {
		inner := &flaky{outages: []outage{{err: rpctypes.ErrNoLeader}, {err: rpctypes.ErrNoLeader}}}
		if expected != 0 {
			inner.kv = &mvccpb.KeyValue{ModRevision: expected}
		}
		ended := 0
		client := decided{inner, func(context.Context) error {
			if ended++; ended == 1 {
				return rpctypes.ErrNoLeader // then it has to be tried again too
			}
			return nil
		}}
		response, err := client.OptimisticPut(t.Context(), "key", []byte("value"), expected, kubernetes.PutOptions{})
		if err != nil || !response.Succeeded || ended != want {
			t.Errorf("revision %d: got %+v, %v, and the epoch ended %d times, want %d", expected, response, err, ended, want)
		}
	}
}

// TestDecidedGivesUp when the request does.
func TestDecidedGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	unanswered := outage{err: rpctypes.ErrNoLeader, meanwhile: func(*flaky) { cancel() }}
	inner := &flaky{outages: []outage{unanswered, unanswered}}
	if _, err := (decided{Interface: inner}).OptimisticPut(ctx, "key", nil, 0, kubernetes.PutOptions{}); !errors.Is(err, rpctypes.ErrNoLeader) || inner.writes != 1 {
		t.Errorf("got %v after %d writes", err, inner.writes)
	}
}
