// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/poll"
)

// TestUnreadableNamespace: nothing is created in a Namespace that cannot be read,
// and it is removed only when it is empty.
func TestUnreadableNamespace(t *testing.T) {
	for mode, change := range cacheModes {
		t.Run(mode, func(t *testing.T) {
			onBoth(t, change, func(t *testing.T, s server) {
				namespaces := kinds[0]
				s.createNamespace(t, "town")
				s.createNamespace(t, "village")
				s.createPod(t, "town", "p")
				s.put(t, namespaces.key("town"), flip(s.raw(t, namespaces.key("town"))))
				for _, server := range []string{"same", "restarted"} {
					if server == "restarted" {
						s = s.reopened(t)
					}
					pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "town", Name: "late"}}
					_, err := s.Pods.Create(in(t.Context(), "town"), pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
					if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "namespace town") {
						t.Errorf("%s server: creating in it: got %v, want an error that names the namespace", server, err)
					}
					s.createPod(t, "village", server)
					err = namespaces.deleteUnsafely(t.Context(), s, "town")
					if !apierrors.HasStatusCause(err, v1.NamespaceNotEmptyCause) || !strings.Contains(err.Error(), "pods.tenancy.borough.io") {
						t.Errorf("%s server: removing it with content: got %v, want Conflict", server, err)
					}
				}
				if _, err := s.Pods.DeleteCollection(in(t.Context(), "town"), rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0), &metainternal.ListOptions{}); err != nil {
					t.Fatal(err)
				}
				if err := namespaces.deleteUnsafely(t.Context(), s, "town"); err != nil {
					t.Fatal(err)
				}
				s.createNamespace(t, "town")
				s.createPod(t, "town", "p")
			})
		})
	}
}

// TestUnreadableNamespaceRace creates Pods in a Namespace that becomes unreadable,
// is removed and created again, and finds at no revision a Pod without it.
func TestUnreadableNamespaceRace(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s server) {
		namespaces, pods := kinds[0], kinds[1]
		response, err := s.client.Get(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		begin := response.Header.Revision
		ctx, cancel := context.WithCancel(t.Context())
		var creators sync.WaitGroup
		created := 0
		for i := range 4 {
			creators.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					name := fmt.Sprintf("p-%d-%d", i, n)
					pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "town", Name: name}}
					_, _ = s.Pods.Create(in(ctx, "town"), pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
				}
			})
		}
		removed := 0
		for removed < 30 {
			s.createNamespace(t, "town")
			value := s.raw(t, namespaces.key("town"))
			poll.Eventually(t, func() string { // another Pod is created
				if len(pods.list(t, s, metainternal.ListOptions{})) == 0 {
					return "no pod was created"
				}
				return ""
			})
			for {
				s.put(t, namespaces.key("town"), flip(value))
				if _, err := s.Pods.DeleteCollection(in(t.Context(), "town"), rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0), &metainternal.ListOptions{}); err != nil {
					t.Fatal(err)
				}
				err := namespaces.deleteUnsafely(t.Context(), s, "town")
				if err == nil {
					removed++
					break
				}
				if !apierrors.HasStatusCause(err, v1.NamespaceNotEmptyCause) {
					t.Fatal(err)
				}
			}
		}
		cancel()
		creators.Wait()

		response, err = s.client.Get(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		end := response.Header.Revision
		var namespace, content = false, map[string]bool{}
		for response := range s.client.Watch(t.Context(), "/registry/tenancy.borough.io/", clientv3.WithPrefix(), clientv3.WithRev(begin+1)) {
			if err := response.Err(); err != nil {
				t.Fatal(err)
			}
			var last int64
			for _, event := range response.Events {
				key, put := string(event.Kv.Key), event.Type == clientv3.EventTypePut
				last = event.Kv.ModRevision
				if key == namespaces.key("town") {
					if namespace = put; !put && len(content) > 0 {
						t.Errorf("revision %d: the namespace is removed with %d pods", last, len(content))
					}
					continue
				}
				if content[key] = true; !put {
					delete(content, key)
				} else if created++; !namespace {
					t.Errorf("revision %d: %s is created without its namespace", last, key)
				}
			}
			if last >= end {
				break
			}
		}
		if created == 0 {
			t.Error("no pod was created")
		}
		t.Logf("%d pods created, the namespace removed %d times", created, removed)
	})
}
