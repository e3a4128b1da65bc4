// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// TestUnreadWatch reads a watch of quotas only after so many large events that most do not
// fit in the buffers of the watch. Another watch, which is read, gets all.
func TestUnreadWatch(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s server) {
		s.createNamespace(t, "town")
		ctx := in(t.Context(), "town")
		created, err := s.ResourceQuotas.Create(ctx, &tenancy.ResourceQuota{ObjectMeta: metav1.ObjectMeta{
			Namespace: "town", Name: "q", Annotations: map[string]string{"large": strings.Repeat("x", 100_000)},
		}}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		from := &metainternal.ListOptions{ResourceVersion: created.(*tenancy.ResourceQuota).ResourceVersion}
		unread, err := s.ResourceQuotas.Watch(ctx, from)
		if err != nil {
			t.Fatal(err)
		}
		defer unread.Stop()
		read, err := s.ResourceQuotas.Watch(ctx, from)
		if err != nil {
			t.Fatal(err)
		}
		defer read.Stop()

		const key = "/registry/tenancy.borough.io/resourcequotas/town/q"
		value, last := string(s.raw(t, key)), ""
		for range 400 {
			response, err := s.client.Put(ctx, key, value)
			if err != nil {
				t.Fatal(err)
			}
			last = fmt.Sprint(response.Header.Revision)
			if got := revision(t, <-read.ResultChan()); got != last {
				t.Fatalf("the watch that is read has revision %s, want %s", got, last)
			}
		}
		for event := range unread.ResultChan() {
			if event.Type == watch.Error {
				if err := apierrors.FromObject(event.Object); !apierrors.IsResourceExpired(err) {
					t.Errorf("the watch ended with %v, want Expired", err)
				}
				return
			}
			if revision(t, event) == last {
				t.Fatal("the server has kept all events")
			}
		}
		t.Error("the watch ended without an error")
	})
}

func revision(t *testing.T, event watch.Event) string {
	t.Helper()
	quota, ok := event.Object.(*tenancy.ResourceQuota)
	if !ok {
		t.Fatalf("got %v %+v", event.Type, event.Object)
	}
	return quota.ResourceVersion
}
