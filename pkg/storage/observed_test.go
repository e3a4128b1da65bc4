// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/borough-io/borough/pkg/storage/embedded/embeddedtest"
)

// TestReachedRevision shows that a server knows the latest revision of etcd in a response to
// any of its clients, and that of its compactor although it gets no requests.
func TestReachedRevision(t *testing.T) {
	member := embeddedtest.Start(t)
	c := newConnections(member)
	client, err := c.client(storagebackend.TransportConfig{})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := member.Client()
	// Revisions that only another server has seen.
	write := func() int64 {
		response, err := elsewhere.Put(t.Context(), "/elsewhere", "")
		if err != nil {
			t.Fatal(err)
		}
		return response.Header.Revision
	}
	for name, request := range map[string]func(context.Context) error{
		"get": func(ctx context.Context) error {
			_, err := client.Kubernetes.Get(ctx, "/key", kubernetes.GetOptions{})
			return err
		},
		"list": func(ctx context.Context) error {
			_, err := client.Kubernetes.List(ctx, "/", kubernetes.ListOptions{})
			return err
		},
		"list at an old revision": func(ctx context.Context) error {
			_, err := client.Kubernetes.List(ctx, "/", kubernetes.ListOptions{Revision: 1})
			return err
		},
		"put that fails": func(ctx context.Context) error {
			_, err := client.Kubernetes.OptimisticPut(ctx, "/key", nil, 1, kubernetes.PutOptions{GetOnFailure: true})
			return err
		},
		"transaction": func(ctx context.Context) error {
			_, err := client.KV.Txn(ctx).Then(clientv3.OpGet("/key")).Commit()
			return err
		},
	} {
		revision := write()
		if err := request(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := (fenceResolver{reached: &c.reached}).Revision(); got != revision {
			t.Errorf("%s: the known revision is %d, want %d", name, got, revision)
		}
	}

	revision := write()
	_, stop, err := c.compactor(storagebackend.TransportConfig{}, 10*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return c.reached.Get() >= revision, nil
	})
	if err != nil {
		t.Errorf("the compactor has asked etcd for no revision: %v", err)
	}
}
