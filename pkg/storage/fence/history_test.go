// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/borough-io/borough/pkg/storage/fence"
)

// TestResolveUpdate resolves an update after others have changed the object.
func TestResolveUpdate(t *testing.T) {
	const key = podsPrefix + "town/p"
	f := newFixture(t)
	for name, test := range map[string]struct {
		carriedOut bool
		after      func()
	}{
		"carried out and changed":          {true, func() { f.write(key, "another") }},
		"carried out and deleted":          {true, func() { f.remove(key) }},
		"carried out, changed often":       {true, func() { f.write(key, "another"); f.write(key, "ours"); f.write(key, "yet another") }},
		"not carried out, but another":     {false, func() { f.write(key, "another") }},
		"not carried out, and deleted":     {false, func() { f.remove(key) }},
		"not carried out, and later alike": {false, func() { f.write(key, "another"); f.write(key, "ours") }},
	} {
		t.Run(name, func(t *testing.T) {
			since, want := f.write(key, "before"), int64(0)
			f.write("/elsewhere", "")
			if test.carriedOut {
				want = f.write(key, "ours")
			}
			test.after()
			until := f.write("/elsewhere", "")
			written, err := fence.ResolveUpdate(t.Context(), f.client.Client, key, []byte("ours"), since, until)
			if err != nil || written != want {
				t.Errorf("got written at %d, %v; want %d", written, err, want)
			}
		})
	}
	since, until := f.write(key, "before"), f.write(key, "another")
	if _, err := f.client.Compact(t.Context(), until); err != nil {
		t.Fatal(err)
	}
	if _, err := fence.ResolveUpdate(t.Context(), f.client.Client, key, []byte("ours"), since-1, until); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("after a compaction: got %v", err)
	}
}
