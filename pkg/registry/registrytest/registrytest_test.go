// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package registrytest_test

import (
	"bytes"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/registrytest"
)

func TestMain(m *testing.M) { registrytest.Main(m) }

func TestRESTOptions(t *testing.T) {
	ctx := t.Context()
	scheme := registrytest.NewScheme()
	newStore := func() (storage.Interface, generic.RESTOptions) {
		opts := registrytest.RESTOptions(t, scheme, tenancy.Resource("pods"))
		store, destroy, err := generic.NewRawStorage(opts.StorageConfig,
			func() runtime.Object { return &tenancy.Pod{} },
			func() runtime.Object { return &tenancy.PodList{} }, "/"+opts.ResourcePrefix)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(destroy)
		return store, opts
	}

	const key = "/tenancy.borough.io/pods/a/b"
	first, opts := newStore()
	pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}
	if err := first.Create(ctx, key, pod, nil, 0); err != nil {
		t.Fatal(err)
	}
	second, _ := newStore()
	if err := second.Get(ctx, key, storage.GetOptions{}, &tenancy.Pod{}); !storage.IsNotFound(err) {
		t.Errorf("two stores share a prefix: got %v, want not found", err)
	}

	client, err := clientv3.New(clientv3.Config{Endpoints: opts.StorageConfig.Transport.ServerList})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	stored, err := client.Get(ctx, opts.StorageConfig.Prefix+key)
	if err != nil {
		t.Fatal(err)
	}
	if len(stored.Kvs) != 1 || !bytes.HasPrefix(stored.Kvs[0].Value, []byte("k8s\x00")) {
		t.Errorf("the object is not stored as protobuf under its key: %v", stored.Kvs)
	}
}
