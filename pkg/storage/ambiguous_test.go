// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
)

// flaky is a client with one key, whose history it resolves updates from. Its writes fail as the outages specify.
type flaky struct {
	kubernetes.Interface
	kv       *mvccpb.KeyValue // nil if the key does not exist
	revision int64
	history  []*mvccpb.KeyValue
	outages  []outage // of the writes to come
	writes   int
	known    int64 // Revision
	since    int64 // of the last ResolveUpdate
}

// outage is the failure of one write.
type outage struct {
	err error
	// carriedOut is true if only the response was lost.
	carriedOut bool
	// beforeRetry happens before the next try.
	beforeRetry func(*flaky)
}

func (f *flaky) put(value string) {
	f.revision++
	f.kv = &mvccpb.KeyValue{Value: []byte(value), ModRevision: f.revision}
	f.history = append(f.history, f.kv)
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
	if now.beforeRetry != nil {
		now.beforeRetry(f)
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

func (f *flaky) Revision() int64 { return f.known }

func (f *flaky) ResolveCreate(context.Context, string, []byte, int64) (written, until int64, err error) {
	return 0, 0, errors.New("not a create")
}

func (f *flaky) ResolveUpdate(_ context.Context, _ string, value []byte, since, until int64) (int64, error) {
	f.since = since
	for _, kv := range f.history {
		if kv.ModRevision > since && kv.ModRevision <= until {
			if bytes.Equal(kv.Value, value) {
				return kv.ModRevision, nil
			}
			return 0, nil
		}
	}
	return 0, nil
}

func (f *flaky) ResolveFull(ctx context.Context, key string, value []byte, expected, since int64) (int64, error) {
	if value == nil && f.kv == nil {
		return f.revision, nil
	}
	return f.ResolveUpdate(ctx, key, value, since, f.revision)
}

var errAborted = errors.New("aborted")

var dropped = status.Error(codes.Unknown, "raft proposal dropped") // as etcd 3.7.3 sends it

func TestAmbiguousWrites(t *testing.T) {
	timedOut := rpctypes.Error(rpctypes.ErrGRPCTimeoutDueToLeaderFail)
	cutOff := status.Error(codes.Unavailable, "keepalive ping failed to receive ACK within timeout")
	byAnother := func(f *flaky) { f.put("another") }
	gone := func(f *flaky) { f.revision, f.kv = f.revision+1, nil }
	createdAgain := func(f *flaky) {
		gone(f)
		f.put("another")
		f.kv.CreateRevision = f.revision
	}
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
		"dropped by the leader":         {[]outage{{err: dropped}}, result{true, 8, nil, 2}, result{true, 8, nil, 2}},
		"not carried out":               {[]outage{{err: timedOut}}, result{true, 8, nil, 2}, result{true, 8, nil, 2}},
		"carried out":                   {[]outage{{err: cutOff, carriedOut: true}}, result{true, 8, nil, 2}, result{true, 8, nil, 2}},
		"unanswered twice":              {[]outage{{err: cutOff}, {err: timedOut, carriedOut: true}}, result{true, 8, nil, 3}, result{true, 8, nil, 3}},
		"changed by another":            {[]outage{{err: timedOut, beforeRetry: byAnother}}, result{false, 8, nil, 2}, result{false, 8, nil, 2}},
		"carried out, and then changed": {[]outage{{err: timedOut, carriedOut: true, beforeRetry: byAnother}}, result{true, 8, nil, 2}, result{false, 9, nil, 2}},
		"deleted by another":            {[]outage{{err: timedOut, beforeRetry: gone}}, result{false, 8, nil, 2}, result{true, 8, nil, 2}},
		"created again by another":      {[]outage{{err: timedOut, carriedOut: true, beforeRetry: createdAgain}}, result{true, 8, nil, 2}, result{true, 10, nil, 2}},
		"an error that is an answer":    {[]outage{{err: errAborted}}, result{false, 0, errAborted, 1}, result{false, 0, errAborted, 1}},
		"no room, which is an answer": {[]outage{{err: rpctypes.Error(rpctypes.ErrGRPCNoSpace)}},
			result{false, 0, rpctypes.ErrNoSpace, 1}, result{false, 0, rpctypes.ErrNoSpace, 1}},
		"no room, but carried out": {[]outage{{err: rpctypes.Error(rpctypes.ErrGRPCNoSpace), carriedOut: true}},
			result{true, 8, nil, 1}, result{true, 8, nil, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			start := func() *flaky {
				return &flaky{revision: expected, kv: &mvccpb.KeyValue{Value: []byte("before"), ModRevision: expected}, outages: test.outages}
			}
			inner := start()
			put, err := ambiguousWriteRetrier{inner, inner}.OptimisticPut(t.Context(), "key", []byte("value"), expected, kubernetes.PutOptions{})
			if got := (result{put.Succeeded, put.Revision, err, inner.writes}); got != test.put {
				t.Errorf("put: got %+v, want %+v", got, test.put)
			}
			inner = start()
			deleted, err := ambiguousWriteRetrier{inner, inner}.OptimisticDelete(t.Context(), "key", expected, kubernetes.DeleteOptions{})
			if got := (result{deleted.Succeeded, deleted.Revision, err, inner.writes}); got != test.delete {
				t.Errorf("delete: got %+v, want %+v", got, test.delete)
			}
		})
	}
}

// TestHistoryOfUpdate shows that the history in which the outcome of an update is looked up
// begins as late as possible, because etcd may have compacted what is older.
func TestHistoryOfUpdate(t *testing.T) {
	for known, want := range map[int64]int64{1: 7, 9: 9} {
		inner := &flaky{
			known: known, revision: 7, kv: &mvccpb.KeyValue{ModRevision: 7},
			outages: []outage{{err: rpctypes.ErrNoLeader, beforeRetry: func(f *flaky) { f.put("another") }}},
		}
		if _, err := (ambiguousWriteRetrier{inner, inner}).OptimisticPut(t.Context(), "key", []byte("value"), 7, kubernetes.PutOptions{}); err != nil || inner.since != want {
			t.Errorf("with revision %d known, it began after %d, error %v; want %d", known, inner.since, err, want)
		}
	}
}

// TestRefusedRetry shows that the refusal of a retry is not returned as the outcome of a
// write: here, the first try was carried out.
func TestRefusedRetry(t *testing.T) {
	for name, write := range map[string]func(context.Context, ambiguousWriteRetrier) error{
		"put": func(ctx context.Context, r ambiguousWriteRetrier) error {
			_, err := r.OptimisticPut(ctx, "key", []byte("value"), 7, kubernetes.PutOptions{})
			return err
		},
		"delete": func(ctx context.Context, r ambiguousWriteRetrier) error {
			_, err := r.OptimisticDelete(ctx, "key", 7, kubernetes.DeleteOptions{})
			return err
		},
		"create": func(ctx context.Context, r ambiguousWriteRetrier) error {
			r.outcomes = &resolver{turns: []resolution{{err: rpctypes.Error(rpctypes.ErrGRPCNoSpace)}}}
			_, err := r.OptimisticPut(ctx, "other", []byte("value"), 0, kubernetes.PutOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inner := &flaky{
				revision: 7, kv: &mvccpb.KeyValue{ModRevision: 7},
				outages: []outage{{err: rpctypes.ErrNoLeader, carriedOut: true}, {err: rpctypes.Error(rpctypes.ErrGRPCNoSpace)}},
			}
			err := interpret(write(t.Context(), ambiguousWriteRetrier{inner, inner}))
			if err == nil || errors.Is(err, rpctypes.ErrNoSpace) || tenancyerrors.IsStorageFull(err) || !strings.Contains(err.Error(), "may have been carried out") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// resolver returns the outcomes of creates, one after another.
type resolver struct {
	full  int64
	turns []resolution
	since []int64
}

type resolution struct {
	written, until int64
	err            error
}

func (r *resolver) Revision() int64 { return 5 }

func (r *resolver) ResolveUpdate(context.Context, string, []byte, int64, int64) (int64, error) {
	return 0, errors.New("not an update")
}

func (r *resolver) ResolveFull(context.Context, string, []byte, int64, int64) (int64, error) {
	return r.full, nil
}

func (r *resolver) ResolveCreate(_ context.Context, _ string, _ []byte, since int64) (written, until int64, err error) {
	r.since = append(r.since, since)
	next := r.turns[0]
	r.turns = r.turns[1:]
	return next.written, next.until, next.err
}

// TestAmbiguousCreates shows that a create is retried only after it was determined
// that it was not carried out.
func TestAmbiguousCreates(t *testing.T) {
	lost := outage{err: rpctypes.ErrNoLeader}
	full := outage{err: rpctypes.Error(rpctypes.ErrGRPCNoSpace)}
	compacted := rpctypes.ErrCompacted
	for name, test := range map[string]struct {
		outages  []outage
		turns    []resolution
		revision int64
		writes   int
		since    []int64
		err      error
		full     int64 // the revision at which a create was carried out for which etcd had no space
	}{
		"answered at once":       {nil, nil, 1, 1, nil, nil, 0},
		"not carried out":        {[]outage{lost}, []resolution{{until: 7}}, 1, 2, []int64{5}, nil, 0},
		"carried out":            {[]outage{lost}, []resolution{{written: 6, until: 7}}, 6, 1, []int64{5}, nil, 0},
		"the second carried out": {[]outage{lost, lost}, []resolution{{until: 7}, {written: 8, until: 9}}, 8, 2, []int64{5, 7}, nil, 0},
		"no answer to that either": {[]outage{lost}, []resolution{{err: fmt.Errorf("ask: %w", rpctypes.ErrNoLeader)}, {written: 6, until: 9}},
			6, 1, []int64{5, 5}, nil, 0},
		"dropped by the leader, as well": {[]outage{lost}, []resolution{{err: fmt.Errorf("ask: %w", dropped)}, {written: 6, until: 9}},
			6, 1, []int64{5, 5}, nil, 0},
		"compacted":                                 {[]outage{lost}, []resolution{{err: compacted}}, 0, 1, []int64{5}, compacted, 0},
		"full, and carried out":                     {[]outage{full}, nil, 6, 1, nil, nil, 6},
		"full, and not carried out":                 {[]outage{full}, nil, 0, 1, nil, rpctypes.ErrNoSpace, 0},
		"full at the second, which was carried out": {[]outage{lost, full}, []resolution{{until: 7}}, 8, 2, []int64{5}, nil, 8},
	} {
		t.Run(name, func(t *testing.T) {
			inner := &flaky{outages: test.outages}
			resolver := &resolver{turns: test.turns, full: test.full}
			response, err := ambiguousWriteRetrier{inner, resolver}.OptimisticPut(t.Context(), "key", []byte("value"), 0, kubernetes.PutOptions{})
			if (err == nil) != (test.err == nil) || err != nil && !strings.Contains(err.Error(), test.err.Error()) || response.Succeeded != (test.err == nil) || response.Revision != test.revision {
				t.Errorf("got %+v, %v; want revision %d, %v", response, err, test.revision, test.err)
			}
			if inner.writes != test.writes || !slices.Equal(resolver.since, test.since) {
				t.Errorf("%d writes, resolved since %v; want %d, %v", inner.writes, resolver.since, test.writes, test.since)
			}
		})
	}
}

// TestAmbiguousWriteOfARequestThatEnds shows that the write is not retried.
func TestAmbiguousWriteOfARequestThatEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	unanswered := outage{err: rpctypes.ErrNoLeader, beforeRetry: func(*flaky) { cancel() }}
	inner := &flaky{outages: []outage{unanswered, unanswered}}
	_, err := ambiguousWriteRetrier{inner, &resolver{}}.OptimisticPut(ctx, "key", nil, 0, kubernetes.PutOptions{})
	if !errors.Is(err, rpctypes.ErrNoLeader) || inner.writes != 1 {
		t.Errorf("got %v after %d writes", err, inner.writes)
	}
}
