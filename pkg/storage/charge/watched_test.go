// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge_test

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/test/poll"
)

// TestWatchedQuotas compares the quotas of a watch with those in etcd, on the server that
// charges them and on another one.
func TestWatchedQuotas(t *testing.T) {
	f := newPipelineFixture(t)
	f.createQuota("q")
	f.create(0, "first") // counts the quota
	var watches [2]watch.Interface
	for i := range watches {
		var err error
		if watches[i], err = f.servers[i].ResourceQuotas.Watch(f.ctx, &internalversion.ListOptions{ResourceVersion: f.revision()}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(watches[i].Stop)
	}
	const pods = 40
	var creates sync.WaitGroup
	defer creates.Wait()
	for i := range pods {
		creates.Go(func() {
			if err := create(f.ctx, f.servers[0].Pods, newPod(fmt.Sprint("p", i))); err != nil {
				t.Error(err)
			}
		})
	}
	var watched [2][]*tenancy.ResourceQuota
	for range pods {
		for i, w := range watches {
			watched[i] = append(watched[i], nextQuota(t, w))
		}
	}
	codec := newHistory(t, f.servers[0]).codecs["resourcequotas"]
	for i := range watched {
		for _, quota := range watched[i] {
			if stored := f.stored(codec, quota); !apiequality.Semantic.DeepEqual(quota, stored) {
				t.Errorf("server %d watched %+v, etcd has %+v", i, quota, stored)
			}
		}
		last := watched[i][pods-1].Status.Used["pods"]
		if last.Value() != 1+pods {
			t.Errorf("server %d watched the usage %v last, want %d", i, last.Value(), 1+pods)
		}
	}
}

// TestCachedQuotas charges a quota: on the server that does it, its version in the watch
// cache is not decoded, but shares memory with the one before.
func TestCachedQuotas(t *testing.T) {
	f := newPipelineFixture(t)
	f.createQuota("q")
	// A list at any revision is from the watch cache.
	hard := func(server int, pods int64) (at uintptr) {
		poll.Eventually(t, func() string {
			list, err := f.servers[server].ResourceQuotas.List(f.ctx, &internalversion.ListOptions{ResourceVersion: "0"})
			if err != nil {
				return err.Error()
			}
			items := list.(*tenancy.ResourceQuotaList).Items
			if len(items) == 0 {
				return "the cache has no quota"
			}
			quota := items[0]
			if used := quota.Status.Used["pods"]; used.Value() != pods {
				return fmt.Sprintf("the usage is %v, want %d", used.Value(), pods)
			}
			at = reflect.ValueOf(quota.Spec.Hard).Pointer()
			return ""
		})
		return at
	}
	f.create(0, "first") // counts the quota
	before := [2]uintptr{hard(0, 1), hard(1, 1)}
	f.create(0, "second")
	for server, at := range before {
		if shares, want := hard(server, 2) == at, server == 0; shares != want {
			t.Errorf("on server %d two versions share memory: %t, want %t", server, shares, want)
		}
	}
}

func nextQuota(t *testing.T, w watch.Interface) *tenancy.ResourceQuota {
	t.Helper()
	select {
	case event := <-w.ResultChan():
		if cached, ok := event.Object.(runtime.CacheableObject); ok {
			event.Object = cached.GetObject()
		}
		quota, ok := event.Object.(*tenancy.ResourceQuota)
		if !ok {
			t.Fatalf("watched %v %+v", event.Type, event.Object)
		}
		return quota
	case <-time.After(time.Minute):
		t.Fatal("the watch has no further event")
		return nil
	}
}

// revision returns the current revision of etcd.
func (f *pipelineFixture) revision() string {
	f.t.Helper()
	response, err := f.client.Get(f.ctx, "now")
	if err != nil {
		f.t.Fatal(err)
	}
	return fmt.Sprint(response.Header.Revision)
}

// stored returns the version of a quota as it is in etcd.
func (f *pipelineFixture) stored(codec runtime.Codec, quota *tenancy.ResourceQuota) *tenancy.ResourceQuota {
	f.t.Helper()
	var revision int64
	if _, err := fmt.Sscan(quota.ResourceVersion, &revision); err != nil {
		f.t.Fatal(err)
	}
	response, err := f.client.Get(f.ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(revision))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, kv := range response.Kvs {
		if resource, _, name, ok := keyOf(string(kv.Key)); !ok || resource != "resourcequotas" || name != quota.Name {
			continue
		}
		obj, err := runtime.Decode(codec, kv.Value)
		if err != nil {
			f.t.Fatal(err)
		}
		stored := obj.(*tenancy.ResourceQuota)
		stored.ResourceVersion = fmt.Sprint(kv.ModRevision)
		return stored
	}
	f.t.Fatalf("etcd has no quota at revision %d", revision)
	return nil
}
