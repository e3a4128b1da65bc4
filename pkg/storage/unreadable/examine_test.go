// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// storedClient is a client of an etcd that has one value since a revision, or none, and another one
// before.
type storedClient struct {
	kubernetes.Interface
	value, previous []byte
	revision        int64
	err             error
}

func (c storedClient) Get(_ context.Context, key string, opts kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	switch {
	case c.err != nil:
		return kubernetes.GetResponse{}, c.err
	case opts.Revision == 0 || opts.Revision >= c.revision:
		if c.value == nil {
			return kubernetes.GetResponse{}, nil
		}
	case c.previous == nil:
		return kubernetes.GetResponse{}, nil
	default:
		return kubernetes.GetResponse{KV: &mvccpb.KeyValue{Key: []byte(key), Value: c.previous, ModRevision: c.revision - 1}}, nil
	}
	return kubernetes.GetResponse{KV: &mvccpb.KeyValue{Key: []byte(key), Value: c.value, ModRevision: c.revision}}, nil
}

// TestReadAfterError examines an object that can be read, after an error that has passed.
// Watches end only if one of them, or a list, has left out what is stored.
func TestReadAfterError(t *testing.T) {
	const none = -1
	for name, tc := range map[string]struct {
		recorded int64 // the revision, 0 if it is not known, or none
		leftOut  int64
		previous string // what is stored before: nothing, "readable", or something else
		ends     bool
	}{
		"a GET has failed":                              {0, 0, "readable", false},
		"a list has left it out":                        {5, 0, "readable", true},
		"a list has left out an earlier state":          {4, 0, "damaged", false},
		"a watch has left out a new one":                {none, 5, "", true},
		"a watch has left it out":                       {none, 5, "readable", true},
		"a watch has left out the previous state":       {none, 5, "damaged", false},
		"a watch has left out an earlier state":         {none, 4, "readable", false},
		"a watch has left it out, and a GET has failed": {0, 5, "readable", true},
	} {
		t.Run(name, func(t *testing.T) {
			s, data := newPodStore(t)
			client := storedClient{value: data, revision: 5}
			switch tc.previous {
			case "":
			case "readable":
				client.previous = data
			default:
				client.previous = []byte(tc.previous)
			}
			s.config.Client = client
			if tc.recorded != none {
				s.note(t.Context(), benchKey, tc.recorded, errors.New("no key"))
			}
			if ends := s.examineKey(t.Context(), benchKey, tc.leftOut); ends != tc.ends {
				t.Errorf("watches end: %t, want %t", ends, tc.ends)
			}
			if !tc.ends && s.config.Objects.any(s.config.Resource) {
				t.Error("the record has stayed")
			}
		})
	}
}

// TestLeftOutDeletion examines an object of which a watch may have left out the deletion.
func TestLeftOutDeletion(t *testing.T) {
	s, data := newPodStore(t)
	for name, tc := range map[string]struct {
		previous []byte
		leftOut  int64
		ends     bool
	}{
		"it could be read":      {data, 5, true},
		"it was left out":       {[]byte("damaged"), 5, false},
		"no watch has left out": {data, 0, false},
		"an earlier state":      {data, 4, false},
	} {
		s.config.Client = storedClient{previous: tc.previous, revision: 5}
		if ends := s.examineKey(t.Context(), benchKey, tc.leftOut); ends != tc.ends {
			t.Errorf("%s: watches end: %t, want %t", name, ends, tc.ends)
		}
	}
}

// TestExaminedAgain shows that an object that a watch has left out is examined until it is known
// whether it can be read.
func TestExaminedAgain(t *testing.T) {
	for name, fail := range map[string]func(*Store, *storedClient){
		"etcd": func(_ *Store, client *storedClient) { client.err = errors.New("no leader") },
		"a key service": func(s *Store, _ *storedClient) {
			s.config.Transformer = failing{err: status.Error(codes.Unavailable, "connection refused")}
		},
	} {
		s, data := newPodStore(t)
		transformer, client := s.config.Transformer, storedClient{value: data, previous: data, revision: 5}
		failed := client
		fail(s, &failed)
		s.config.Client = failed
		if s.examineKey(t.Context(), benchKey, 5) {
			t.Errorf("%s: watches end before it is known", name)
		}
		s.config.Client, s.config.Transformer = client, transformer
		again := s.config.Objects.Some(s.config.Resource, MaxExamined)
		if len(again) != 1 || !s.examineKey(t.Context(), again[0].Key, 0) {
			t.Errorf("%s: watches do not end: %v", name, again)
		}
	}
}

// TestQueued shows that one object is examined once for all watches that have left it out.
func TestQueued(t *testing.T) {
	s, _ := newPodStore(t)
	for revision := range int64(3 * maxSuspects) {
		s.suspect(suspect{fmt.Sprint(revision % 2), revision})
	}
	want := map[string]int64{"0": maxSuspects - 2, "1": maxSuspects - 1, "first": 0}
	if got := s.queued(suspect{key: "first"}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
