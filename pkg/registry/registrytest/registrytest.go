// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registrytest runs the tests of a registry against a real etcd, in the
// encoding that the server stores.
//
// A test package starts the etcd from TestMain and then asks for options, one
// set for each store that must not see the objects of another:
//
//	func TestMain(m *testing.M) { registrytest.Main(m) }
//
//	func TestX(t *testing.T) {
//		scheme := registrytest.NewScheme()
//		opts := registrytest.RESTOptions(t, scheme, tenancy.Resource("pods"))
//		storage, err := NewStorage(scheme, opts)
//		...
//		t.Cleanup(storage.Pod.Destroy)
//	}
package registrytest

import (
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	"github.com/borough-io/borough/test/leaktest"
)

// startTimeout is how long etcd may take to start on a machine under load.
const startTimeout = time.Minute

// mediaType is what the server stores.
const mediaType = "application/vnd.kubernetes.protobuf"

var (
	endpoint string       // of the etcd that Main started
	prefixes atomic.Int64 // how many prefixes have been given out
)

// Main starts an etcd, runs the tests that share it, and exits with their result.
// It also fails if goroutines are left running.
func Main(m *testing.M) {
	code, err := run(m)
	if code == 0 && err == nil {
		err = leaktest.Check()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "registrytest: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "registrytest-")
	if err != nil {
		return 0, fmt.Errorf("create the data directory of etcd: %w", err)
	}
	defer os.RemoveAll(dir)

	// The ports are chosen by the system.
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = anyPort, anyPort
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = anyPort, anyPort
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.LogLevel = "fatal" // it reports its own shutdown as errors
	// The data dies with the tests, and a single member waits for no vote.
	cfg.UnsafeNoFsync = true
	cfg.TickMs, cfg.ElectionMs = 20, 100

	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return 0, fmt.Errorf("start etcd: %w", err)
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
	case err := <-etcd.Err():
		return 0, fmt.Errorf("start etcd: %w", err)
	case <-time.After(startTimeout):
		return 0, fmt.Errorf("start etcd: not ready after %s", startTimeout)
	}
	endpoint = etcd.Clients[0].Addr().String()
	return m.Run(), nil
}

// NewScheme returns a scheme with the types of the group.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}

// RESTOptions returns options for the store of a resource, under a prefix of
// etcd that nothing else uses. They are a RESTOptionsGetter too.
//
// The store has no watch cache; set Decorator for one. The caller that creates the
// store destroys it before the test ends.
func RESTOptions(t testing.TB, scheme *runtime.Scheme, resource schema.GroupResource) generic.RESTOptions {
	t.Helper()
	if endpoint == "" {
		t.Fatal("registrytest: the package has no TestMain that calls registrytest.Main")
	}
	config := storagebackend.NewDefaultConfig(fmt.Sprintf("/registrytest/%d", prefixes.Add(1)), nil)
	config.Transport.ServerList = []string{endpoint}
	config.CompactionInterval = 0 // the history of a test is short

	factory := serverstorage.NewDefaultStorageFactory(*config, mediaType, serializer.NewCodecFactory(scheme),
		serverstorage.NewDefaultResourceEncodingConfig(scheme), serverstorage.NewResourceConfig(), nil)
	storageConfig, err := factory.NewConfig(resource, nil)
	if err != nil {
		t.Fatalf("registrytest: configure the storage of %s: %v", resource, err)
	}
	return generic.RESTOptions{
		StorageConfig:           storageConfig,
		Decorator:               generic.UndecoratedStorage,
		DeleteCollectionWorkers: 3,
		ResourcePrefix:          resource.Group + "/" + resource.Resource,
	}
}
