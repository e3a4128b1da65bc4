// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/transaction"
)

const (
	newNamespaceKey = namespacesPrefix + "town"
	newPodKey       = podsPrefix + "town/p"
)

// createTogether creates a Namespace and a Pod in one transaction, through the store of
// Namespaces.
func (f *fixture) createTogether(namespaces kubernetes.Interface, guard *transaction.Guard) (kubernetes.PutResponse, error) {
	pods := transaction.NewClient(f.pods, nil)
	createPod := func(ctx context.Context) error {
		_, err := pods.OptimisticPut(ctx, newPodKey, []byte("pod"), 0, kubernetes.PutOptions{})
		return err
	}
	ctx := transaction.With(f.t.Context(), func(context.Context) (transaction.Plan, error) {
		return transaction.Plan{Guard: guard, Creates: []func(context.Context) error{createPod}}, nil
	})
	return transaction.NewClient(namespaces, nil).OptimisticPut(ctx, newNamespaceKey, []byte(active(f.t)), 0, kubernetes.PutOptions{GetOnFailure: true})
}

func (f *fixture) guard() *transaction.Guard {
	f.t.Helper()
	guard, err := f.fence.Guard(f.t.Context(), "alice")
	if err != nil {
		f.t.Fatal(err)
	}
	return guard
}

// revisionOf returns the revision that wrote a key, or 0.
func (f *fixture) revisionOf(key string) int64 {
	f.t.Helper()
	response, err := f.client.KV.Get(f.t.Context(), key)
	if err != nil {
		f.t.Fatal(err)
	}
	if len(response.Kvs) == 0 {
		return 0
	}
	return response.Kvs[0].ModRevision
}

func TestCreateTogether(t *testing.T) {
	for name, test := range map[string]struct {
		before     func(f *fixture)
		unguarded  bool
		guard      func(f *fixture, guard *transaction.Guard)
		wantErr    string // contains
		wantExists bool   // the response is a conflict
	}{
		"guarded":            {},
		"guarded again":      {before: func(f *fixture) { f.write(f.guard().Key, "") }},
		"unguarded":          {unguarded: true},
		"new generation":     {before: func(f *fixture) { f.write(config().GenerationKey, "") }},
		"namespace exists":   {before: func(f *fixture) { f.write(newNamespaceKey, "another") }, wantExists: true},
		"guard was written":  {guard: func(f *fixture, guard *transaction.Guard) { f.write(guard.Key, "") }, wantErr: transaction.ErrGuardChanged.Error()},
		"guard was removed":  {guard: func(f *fixture, guard *transaction.Guard) { guard.Revision = 7 }, wantErr: transaction.ErrGuardChanged.Error()},
		"orphan of the past": {before: func(f *fixture) { f.write(newPodKey, "orphan") }, wantErr: "a namespace that does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if test.before != nil {
				test.before(f)
			}
			guard := f.guard()
			if test.guard != nil {
				test.guard(f, guard)
			}
			key, before := guard.Key, f.revisionOf(guard.Key)
			if test.unguarded {
				guard = nil
			}
			response, err := f.createTogether(f.namespaces, guard)
			namespace, pod, guarded := f.revisionOf(newNamespaceKey), f.revisionOf(newPodKey), f.revisionOf(key)
			switch {
			case test.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("got %v, want %s", err, test.wantErr)
				}
			case test.wantExists:
				if err != nil || response.Succeeded || string(response.KV.GetValue()) != "another" || pod != 0 {
					t.Errorf("got %v, %v, and a Pod of revision %d; want a conflict", response, err, pod)
				}
			default:
				if err != nil || !response.Succeeded || namespace != response.Revision || pod != response.Revision {
					t.Errorf("got %v, %v, the Namespace at %d, the Pod at %d", response, err, namespace, pod)
				}
			}
			if created := err == nil && response.Succeeded; created && !test.unguarded && guarded != response.Revision || !(created && !test.unguarded) && guarded != before {
				t.Errorf("the guard is at revision %d, before at %d", guarded, before)
			}
			if test.wantErr != "" && namespace != 0 {
				t.Error("the Namespace was created")
			}
		})
	}
}

// TestResolveCreateTogether leaves the first try unanswered, and resolves it by the
// Namespace.
func TestResolveCreateTogether(t *testing.T) {
	for name, carryOut := range map[string]bool{"carried out": true, "not carried out": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			kv := &unansweredKV{KV: f.client.KV, carryOut: carryOut}
			client := &kubernetes.Client{Client: f.client.Client}
			client.Kubernetes = client
			client.KV = kv
			t.Cleanup(func() { client.KV = kv.KV })
			store := f.fence.Wrap(tenancy.Resource("namespaces"), client)
			guard := f.guard()
			if _, err := f.createTogether(store, guard); !errors.Is(err, errUnanswered) {
				t.Fatalf("got %v, want %v", err, errUnanswered)
			}
			want := f.revisionOf(newNamespaceKey)
			if got := f.revisionOf(newPodKey); got != want {
				t.Errorf("the Pod is at revision %d, the Namespace at %d", got, want)
			}
			written, _, err := f.fence.ResolveCreate(t.Context(), f.client.Client, newNamespaceKey, []byte(active(t)), 1)
			if err != nil || written != want {
				t.Errorf("got written at %d, %v; want %d", written, err, want)
			}
			if carryOut {
				return
			}
			// The member continues with the first try.
			if response, err := kv.held.Commit(); err != nil || response.Succeeded {
				t.Errorf("the first try was carried out after all: %v, %v", response, err)
			}
			response, err := f.createTogether(store, guard)
			if err != nil || !response.Succeeded || f.revisionOf(newPodKey) != response.Revision {
				t.Errorf("the next try: %v, %v", response, err)
			}
		})
	}
}
