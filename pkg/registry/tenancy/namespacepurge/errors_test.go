// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacepurge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// TestErrors shows which errors stop a purge.
func TestErrors(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	both(t, func(t *testing.T, spec func(types.UID) tenancy.NamespacePurgeSpec) {
		t.Run("pods that may not be deleted", func(t *testing.T) {
			p := newPurger(t, member)
			p.CreatePods(t, 20)
			p.CreateLimitRange(t, "limits")
			kept := []string{"p00", "p01", "p02", "p03", "p04", "p15"} // more than there are workers
			uid := p.Terminate(t)
			p.admit = func(name string) error {
				if slices.Contains(kept, name) {
					return apierrors.NewForbidden(tenancy.Resource("pods"), name, errors.New("it is kept"))
				}
				return nil
			}
			if _, err := p.purge(spec(uid)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"p00" is forbidden: it is kept`) {
				t.Errorf("got %v, want the error of the first Pod", err)
			}
			if diff := cmp.Diff(kept, p.PodNames(t)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			if _, err := p.LimitRanges.Get(p.Context, "limits", &metav1.GetOptions{}); err != nil {
				t.Errorf("the LimitRange, while Pods are left: %v", err)
			}
		})
		for name, failure := range map[string]error{
			"no status":  errors.New("away"),
			"internal":   apierrors.NewInternalError(errors.New("away")),
			"overloaded": apierrors.NewTooManyRequests("away", 1),
		} {
			t.Run(name, func(t *testing.T) {
				p := newPurger(t, member)
				p.purges.Content[0].PageSize = 20
				p.CreatePods(t, 20)
				// That of another resource of the same stage would be tried if the Pods were refused.
				p.purges.Content[1].Stage = p.purges.Content[0].Stage
				p.CreateLimitRange(t, "limits")
				uid := p.Terminate(t)
				var calls atomic.Int64
				p.admit = func(string) error {
					calls.Add(1)
					return failure
				}
				if _, err := p.purge(spec(uid)); err == nil || !strings.Contains(err.Error(), "away") {
					t.Errorf("got %v", err)
				}
				if workers := int64(p.Pods.DeleteCollectionWorkers); calls.Load() > workers {
					t.Errorf("%d objects were tried, want at most one for each of the %d workers", calls.Load(), workers)
				}
				if left := p.PodNames(t); len(left) != 20 {
					t.Errorf("%d are left", len(left))
				}
			})
		}
	})
}

// TestInterrupted ends the context of a purge halfway. The audit event has what was
// deleted until then, and another purge deletes the rest.
func TestInterrupted(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	both(t, func(t *testing.T, spec func(types.UID) tenancy.NamespacePurgeSpec) {
		p := newPurger(t, member)
		p.CreatePods(t, 40)
		uid := p.Terminate(t)
		whole := p.ctx
		ctx, cancel := context.WithCancel(audit.WithAuditContext(whole))
		defer cancel()
		if err := audit.AuditContextFrom(ctx).Init(audit.RequestAuditConfig{Level: auditinternal.LevelMetadata}, nil); err != nil {
			t.Fatal(err)
		}
		p.ctx = ctx
		p.admit = func(name string) error {
			if name == "p10" {
				cancel()
			}
			return nil
		}
		if _, err := p.purge(spec(uid)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that the purge was interrupted", err)
		}
		gone := 40 - len(p.PodNames(t))
		if gone == 0 || gone == 40 {
			t.Fatalf("%d of 40 Pods are gone", gone)
		}
		// The context can end before the answer to a delete is there.
		annotation, _ := audit.AuditContextFrom(ctx).GetEventAnnotation("namespacepurges.tenancy.borough.io/removed")
		var removed int
		if _, err := fmt.Sscanf(annotation, "pods=%d", &removed); err != nil || removed == 0 || removed > gone {
			t.Errorf("the audit event has %q, and %d Pods are gone", annotation, gone)
		}

		p.ctx = whole
		if _, err := p.purge(spec(uid)); err != nil || len(p.PodNames(t)) > 0 {
			t.Errorf("after the next purge, %v are left, error %v", p.PodNames(t), err)
		}
	})
}
