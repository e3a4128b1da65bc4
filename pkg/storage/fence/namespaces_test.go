// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/v3/kubernetes"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/fence"
)

func TestRemove(t *testing.T) {
	const key = namespacesPrefix + "town"
	for name, test := range map[string]struct {
		// content are the keys besides the namespace.
		content []string
		// left are the resources that the error names.
		left string
		// stale is true to delete at an old revision of the namespace.
		stale bool
	}{
		"empty":                      {},
		"pod":                        {content: []string{podsPrefix + "town/p"}, left: "pods.tenancy.borough.io"},
		"several":                    {content: []string{podsPrefix + "town/p", podsPrefix + "town/q", limitRangesPrefix + "town/l"}, left: "limitranges.tenancy.borough.io, pods.tenancy.borough.io"},
		"content of others":          {content: []string{podsPrefix + "townhall/p", podsPrefix + "tow/p", podsPrefix + "town0/p", podsPrefix + "a/town"}},
		"changed":                    {stale: true},
		"changed and there is a pod": {stale: true, content: []string{podsPrefix + "town/p"}},
	} {
		for _, emptiness := range []string{"unknown", "in the caches", "by the caller", "by the caller, but unreadable"} {
			t.Run(name+", emptiness: "+emptiness, func(t *testing.T) {
				f := newFixture(t, func(c *fence.Config) {
					c.SeemsEmpty = func(context.Context, string) bool { return emptiness == "in the caches" }
					c.Unreadable = func(string) bool { return strings.HasSuffix(emptiness, "unreadable") }
				})
				ctx, seemsEmpty := t.Context(), emptiness == "in the caches" || emptiness == "by the caller"
				if strings.HasPrefix(emptiness, "by the caller") {
					ctx = fence.LikelyEmpty(ctx)
				}
				revision := f.write(key, terminating(t))
				for _, key := range test.content {
					f.write(key, "content")
				}
				if test.stale {
					f.write(key, "changed")
				}
				response, err := f.namespaces.OptimisticDelete(ctx, key, revision, kubernetes.DeleteOptions{GetOnFailure: true})
				switch {
				case test.stale:
					if err != nil || response.Succeeded || string(response.KV.GetValue()) != "changed" {
						t.Errorf("got %v, %v; want a conflict with the changed value", response, err)
					}
				case test.left != "":
					cause, ok := apierrors.StatusCause(err, v1.NamespaceNotEmptyCause)
					if !apierrors.IsConflict(err) || !ok {
						t.Fatalf("got %v, want Conflict with cause %s", err, v1.NamespaceNotEmptyCause)
					}
					text := "there is content left in it: " + test.left
					if want := `Operation cannot be fulfilled on namespaces.tenancy.borough.io "town": ` + text; err.Error() != want {
						t.Errorf("got %q, want %q", err, want)
					}
					if cause.Message != text {
						t.Errorf("got cause %q, want %q", cause.Message, text)
					}
				case err != nil || !response.Succeeded:
					t.Errorf("got %v, %v; want success", response, err)
				}
				if gone := !f.exists(key); gone != (test.left == "" && !test.stale) {
					t.Errorf("the namespace is gone: %t", gone)
				}
				transactions := 2
				switch {
				case seemsEmpty && test.left == "" && !test.stale:
					transactions = 1
				case !seemsEmpty && (test.left != "" || test.stale):
					transactions = 1
				}
				if got := int(f.transactions.Load()); got != transactions {
					t.Errorf("%d transactions, want %d", got, transactions)
				}
			})
		}
	}
}

func TestRemoveAbsent(t *testing.T) {
	f := newFixture(t)
	response, err := f.namespaces.OptimisticDelete(t.Context(), namespacesPrefix+"town", 7, kubernetes.DeleteOptions{GetOnFailure: true})
	if err != nil || response.Succeeded || response.KV != nil {
		t.Errorf("got %v, %v; want a conflict without a value", response, err)
	}
}
