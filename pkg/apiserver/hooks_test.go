// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
)

// filledStore is the storage of a resource whose watch cache may be filled.
type filledStore struct {
	rest.StorageWithReadiness
	filled atomic.Bool
}

func (s *filledStore) ReadinessCheck() error {
	if !s.filled.Load() {
		return errors.New("not filled")
	}
	return nil
}

// TestHooks checks what waits for the watch caches, and what for the start.
func TestHooks(t *testing.T) {
	config := genericapiserver.NewConfig(serializer.NewCodecFactory(runtime.NewScheme()))
	config.ExternalAddress = "localhost:443"
	config.LoopbackClientConfig = &clientrest.Config{}
	config.EffectiveVersion = compatibility.NewEffectiveVersionFromString("1.37", "1.37", "1.37")
	server, err := config.Complete(nil).New("test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Destroy()

	synctest.Test(t, func(t *testing.T) {
		store, finish := &filledStore{}, make(chan struct{})
		var began []string
		run := func(name string, until <-chan struct{}) func(context.Context) {
			return func(context.Context) {
				began = append(began, name)
				<-until
			}
		}
		ended := make(chan struct{})
		close(ended)
		works := []work{
			{name: "waits", do: run("waits", finish)},
			{name: "direct", do: run("direct", ended), direct: true},
		}
		err := addHooks(server, []apiGroup{{"g", map[string]rest.Storage{"r": store}}}, works, run("after", ended))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		server.RunPostStartHooks(ctx)
		for _, step := range []struct {
			do   func()
			want []string
		}{
			{func() {}, []string{"direct"}},
			{func() { store.filled.Store(true) }, []string{"direct", "waits"}},
			{func() { close(finish) }, []string{"direct", "waits", "after"}},
		} {
			step.do()
			time.Sleep(2 * storesInterval)
			synctest.Wait()
			if !slices.Equal(began, step.want) {
				t.Errorf("%q have begun, want %q", began, step.want)
			}
		}
	})
}
