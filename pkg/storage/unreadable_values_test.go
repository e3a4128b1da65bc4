// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig/controller"

	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/poll"
)

// TestUnreadableKeyReturns takes a key out of the encryption config and puts it
// back: the objects are gone and there again, without a restart, and a watch cannot
// continue a list without them. If etcd is full, only the watches that run end: a list with
// the objects could have the same revision.
func TestUnreadableKeyReturns(t *testing.T) {
	period := controller.EncryptionConfigFileChangePollDuration
	controller.EncryptionConfigFileChangePollDuration = 20 * time.Millisecond
	t.Cleanup(func() { controller.EncryptionConfigFileChangePollDuration = period })
	for mode, change := range cacheModes {
		t.Run(mode, func(t *testing.T) { testKeyReturns(t, change, false) })
	}
	t.Run("full", func(t *testing.T) { testKeyReturns(t, cacheModes["no watch cache"], true) })
}

func testKeyReturns(t *testing.T, change func(*storage.Options), full bool) {
	encrypted := func(o *storage.Options) {
		file := filepath.Join(t.TempDir(), "encryption.yaml")
		writeEncryption(t, file, "one")
		change(o)
		o.Etcd.EncryptionProviderConfigFilepath = file
		o.Etcd.EncryptionProviderConfigAutomaticReload = true
	}
	onBothWithQuota(t, storagetest.SmallQuota, encrypted, func(t *testing.T, s server) {
		t.Parallel() // they wait for seconds
		file := s.options.Etcd.EncryptionProviderConfigFilepath
		s.createNamespace(t, "town")
		for _, k := range kinds {
			k.create(t, s, k.new("o"))
		}
		if full {
			storagetest.Fill(t, s.client)
		}
		writeEncryption(t, file, "two")
		s = s.reopened(t)
		run(t, s.Config)
		without := map[string]*metainternal.ListOptions{}
		watches := map[string]watch.Interface{}
		for _, k := range kinds {
			list, err := k.store(s).List(k.in(t.Context()), &metainternal.ListOptions{})
			if err != nil || meta.LenList(list) > 0 {
				t.Errorf("list of %s without the key: %v, %v", k.resource, list, err)
			}
			without[k.resource] = &metainternal.ListOptions{ResourceVersion: list.(metav1.ListInterface).GetResourceVersion()}
			if watches[k.resource], err = k.store(s).Watch(k.in(t.Context()), without[k.resource]); err != nil {
				t.Fatal(err)
			}
		}
		if !full { // then lists before and after have the same revision
			for _, k := range kinds {
				stop := k.readCached(t, s)
				defer stop()
			}
		}
		writeEncryption(t, file, "two", "one")
		for _, k := range kinds {
			for event := range watches[k.resource].ResultChan() {
				if err := apierrors.FromObject(event.Object); !apierrors.IsResourceExpired(err) {
					t.Errorf("a watch of %s got %v", k.resource, event)
				}
			}
		}
		for _, k := range kinds {
			poll.Eventually(t, func() string {
				list, err := k.store(s).List(k.in(t.Context()), &metainternal.ListOptions{})
				if err != nil {
					return err.Error() // the watch cache starts again
				}
				if n := meta.LenList(list); n == 0 || len(k.unread(s)) > 0 {
					return fmt.Sprintf("%s with the key: %d, unreadable: %v", k.resource, n, k.unread(s))
				}
				return ""
			})
			if full {
				continue
			}
			if err := firstError(t, s, k, without[k.resource]); !apierrors.IsResourceExpired(err) {
				t.Errorf("a watch of %s from a list without the key: %v", k.resource, err)
			}
		}
	})
}

// firstError returns the error with which a watch does not start or ends.
func firstError(t *testing.T, s server, k kind, options *metainternal.ListOptions) error {
	t.Helper()
	w, err := k.store(s).Watch(k.in(t.Context()), options)
	if err != nil {
		return err
	}
	defer w.Stop()
	select {
	case event := <-w.ResultChan():
		return apierrors.FromObject(event.Object)
	case <-time.After(time.Minute):
		return errors.New("the watch has no event")
	}
}

// TestUnreadableEveryByte flips a bit in each byte of an object of each kind, one
// at a time. Regardless of the effect on the object, the other objects are unchanged,
// and all servers return the same: one whose watch cache is older than the change, one
// whose watch cache is newer, and one that has none.
func TestUnreadableEveryByte(t *testing.T) {
	config := storagetest.NewConfig(storagetest.StartEmbedded(t))
	open := func(mode string) server {
		s := server{client: config.Embedded.Client(), options: storage.NewOptions(), config: config}
		cacheModes[mode](s.options)
		return s.reopened(t)
	}
	before := open("watch cache")
	before.createNamespace(t, "town")
	for _, k := range kinds {
		t.Run(k.resource, func(t *testing.T) {
			k.create(t, before, k.new("good"))
			var names []string
			damaged := map[string][]byte{}
			for i := 0; ; i++ {
				name := fmt.Sprintf("o%04d", i)
				k.create(t, before, k.new(name))
				value := bytes.Clone(before.raw(t, k.key(name)))
				if i == len(value) {
					break
				}
				value[i] ^= 1 << (i % 8)
				names, damaged[name] = append(names, name), value
			}
			for _, name := range names {
				before.put(t, k.key(name), damaged[name])
			}
			without := open("no watch cache")
			want := k.list(t, without, metainternal.ListOptions{})
			for _, name := range append(names, "good") {
				_, err := k.store(without).Get(k.in(t.Context()), name, &metav1.GetOptions{})
				if slices.Contains(want, name) != (err == nil) || err != nil && !apierrors.IsStoreReadError(err) {
					t.Errorf("%s is listed: %t, got: %v", name, slices.Contains(want, name), err)
				}
			}
			if want[0] != "good" || len(want) != len(slices.Compact(slices.Clone(want))) {
				t.Errorf("listed: %v", want)
			}
			for when, s := range map[string]server{"before": before, "after": open("watch cache")} {
				if diff := cmp.Diff(want, k.list(t, s, metainternal.ListOptions{})); diff != "" {
					t.Errorf("the watch cache from %s (-want +got):\n%s", when, diff)
				}
			}
			t.Logf("of %d damaged objects, %d can be read", len(names), len(want)-2)
			for _, name := range names {
				if slices.Contains(want, name) {
					continue
				}
				if err := k.deleteUnsafely(t.Context(), before, name); err != nil {
					t.Errorf("delete %s: %v", name, err)
				}
			}
		})
	}
}

// readCached reads a kind from the watch cache until stop is called, and checks that the object
// is either in what it reads, or recorded as one that cannot be read before or after.
func (k kind) readCached(t *testing.T, s server) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() {
		for ctx.Err() == nil {
			before := len(k.unread(s))
			list, err := k.store(s).List(k.in(ctx), &metainternal.ListOptions{ResourceVersion: "0"})
			if err != nil { // the watch cache starts again
				continue
			}
			if meta.LenList(list)+before+len(k.unread(s)) == 0 {
				t.Errorf("%s: the object is neither in the list nor recorded", k.resource)
				return
			}
		}
	})
	return func() {
		cancel()
		reading.Wait()
	}
}
