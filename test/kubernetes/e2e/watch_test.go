// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	"github.com/borough-io/borough/test/poll"
)

// TestInformer checks that an informer misses no Pod while its connections
// break and its server is restarted.
func TestInformer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	namespace := newNamespace(t)
	client := cluster.BoroughClient(t)
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithNamespace(namespace))
	informer := factory.Tenancy().V1().Pods()
	var mu sync.Mutex
	added, deleted := map[string]int{}, map[string]int{}
	count := func(counts map[string]int) func(any) {
		return func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			mu.Lock()
			defer mu.Unlock()
			counts[object.(*v1.Pod).Name]++
		}
	}
	if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: count(added), DeleteFunc: count(deleted)}); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	factory.WaitForCacheSync(ctx.Done())

	server := borough.Servers[0]
	start := func() {
		t.Helper()
		if err := server.Start(ctx); err != nil {
			t.Fatal(err)
		}
		// Later tests need the aggregator to mark the server as available.
		if err := borough.AwaitAPI(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// The informer's backoff grows with every disconnect.
	interruptions := []func(){
		cluster.Network.Disconnect,
		func() {
			if err := server.Process.Stop(); err != nil {
				t.Fatal(err)
			}
			start()
		},
		func() {
			server.Process.Kill()
			start()
		},
	}
	for i, interrupt := range interruptions {
		stays, goes := fmt.Sprintf("stays-%d", i), fmt.Sprintf("goes-%d", i)
		newPod(t, namespace, stays)
		newPod(t, namespace, goes)
		// The informer has the Pod, so it must report its deletion.
		poll.Eventually(t, func() string {
			if _, err := informer.Lister().Pods(namespace).Get(goes); err != nil {
				return err.Error()
			}
			return ""
		})
		interrupt()
		poll.Eventually(t, func() string { // pending requests fail
			err := client.TenancyV1().Pods(namespace).Delete(ctx, goes, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return err.Error()
			}
			return ""
		})
	}
	poll.Eventually(t, func() string {
		mu.Lock()
		defer mu.Unlock()
		for i := range interruptions {
			stays, goes := fmt.Sprintf("stays-%d", i), fmt.Sprintf("goes-%d", i)
			if added[stays] != 1 || added[goes] != 1 || deleted[stays] != 0 || deleted[goes] != 1 {
				return fmt.Sprintf("round %d: added %d and %d times, deleted %d and %d times; want 1 and 1, 0 and 1",
					i, added[stays], added[goes], deleted[stays], deleted[goes])
			}
		}
		return ""
	})
}
