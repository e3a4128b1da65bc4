// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
)

var sizeObjects = flag.Int("objects", 200, "number of Namespaces, and of Pods, that TestEtcdSize creates")

// TestEtcdSize measures what objects and their history take in the database of etcd,
// which docs/capacity.md says. It defragments the database for this: otherwise, pages that
// are free only once etcd has ended its transactions count.
func TestEtcdSize(t *testing.T) {
	t.Parallel()
	endpoint := *listEtcd
	if endpoint == "" {
		endpoint = storagetest.StartGRPC(t)
	}
	etcd := storagetest.NewClient(t, endpoint)
	b := harness.New(t)
	if err := b.StartServer(t.Context(), "--etcd-servers="+endpoint); err != nil {
		t.Fatal(err)
	}
	client, n := b.HTTP(t), int64(*sizeObjects)

	compact(t, etcd)
	last := size(t, etcd)
	t.Logf("without objects: %d bytes", last)
	for _, step := range []struct {
		name  string
		write func(i int) harness.Answer // nil creates Pods with a status
		// most is the limit for each in bytes, with the history and without.
		most, mostCompacted int64
	}{
		{"Namespaces", func(i int) harness.Answer {
			return client.Do(t, http.MethodPost, api+"/namespaces", fmt.Appendf(nil, `{"metadata":{"name":"size-%d","labels":{"team":"a"}}}`, i), "Content-Type", "application/json")
		}, 1 << 10, 1 << 10},
		{"Pods", nil, 10 << 10, 5 << 10},
		{"updates of the status of a Pod", func(i int) harness.Answer {
			return client.Do(t, http.MethodPatch, fmt.Sprintf("%s/namespaces/default/pods/web-%d/status", api, i), []byte(`{"status":{"message":"updated"}}`), "Content-Type", "application/merge-patch+json")
		}, 5 << 10, 256},
	} {
		if step.write == nil {
			createPods(t, b, *sizeObjects)
		} else {
			concurrently(t, *sizeObjects, func(i int) error {
				if answer := step.write(i); answer.Code != http.StatusOK && answer.Code != http.StatusCreated {
					return fmt.Errorf("write: %v", answer)
				}
				return nil
			})
		}
		grown := (size(t, etcd) - last) / n
		compact(t, etcd)
		compacted := size(t, etcd)
		kept := (compacted - last) / n
		last = compacted
		t.Logf("%d %s: %d bytes each, %d without the history", n, step.name, grown, kept)
		if grown > step.most || kept > step.mostCompacted {
			t.Errorf("%s: want at most %d and %d bytes", step.name, step.most, step.mostCompacted)
		}
	}
}

// size returns how many bytes the database of etcd has once it is defragmented.
func size(t *testing.T, etcd *clientv3.Client) int64 {
	t.Helper()
	endpoint := etcd.Endpoints()[0]
	if _, err := etcd.Defragment(t.Context(), endpoint); err != nil {
		t.Fatal(err)
	}
	status, err := etcd.Status(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return status.DbSize
}

// compact removes the history from the database of etcd.
func compact(t *testing.T, etcd *clientv3.Client) {
	t.Helper()
	status, err := etcd.Status(t.Context(), etcd.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Compact(t.Context(), status.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
}
