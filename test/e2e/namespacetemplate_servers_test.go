// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
)

// TestNamespaceTemplateOfAnotherServer writes templates through one server and, after
// its response, Namespaces through another one whose watches are delayed.
func TestNamespaceTemplateOfAnotherServer(t *testing.T) {
	t.Parallel()
	first, second, proxy := startTwo(t, storagetest.StartGRPC(t), nil)
	proxy.SetDelay(200 * time.Millisecond)
	templates, namespaces := first.Client(t).TenancyV1().NamespaceTemplates(), second.Client(t).TenancyV1().Namespaces()
	put := func(template *v1.NamespaceTemplate) {
		t.Helper()
		template.TypeMeta = metav1.TypeMeta{APIVersion: v1.SchemeGroupVersion.String(), Kind: "NamespaceTemplate"}
		if _, err := templates.Patch(t.Context(), template.Name, types.ApplyPatchType, toJSON(t, template), metav1.PatchOptions{FieldManager: "test", Force: new(true)}); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(name string) {
		t.Helper()
		if err := templates.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	create := func(label string, dryRun ...string) (string, error) {
		n++
		name := fmt.Sprint("ns-", n)
		_, err := namespaces.Create(t.Context(), labelled(name, label), metav1.CreateOptions{DryRun: dryRun})
		return name, err
	}
	wantLimits := func(label, limits string) {
		t.Helper()
		name, err := create(label)
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "the LimitRanges", second.Kubectl(t, "get", "limits", "-n", name, "-o", "jsonpath={.items[*].metadata.name}"), limits)
	}
	wantRefused := func(label, reason string) {
		t.Helper()
		for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
			name, err := create(label, dryRun...)
			wantEqual(t, "the refusal", wantCode(t, err, 403).Message, fmt.Sprintf("namespaces.tenancy.borough.io %q is forbidden: %s", name, reason))
		}
	}
	limits := func(name, limits string, modify ...func(*v1.NamespaceTemplateSpec)) *v1.NamespaceTemplate {
		modify = append(modify, func(s *v1.NamespaceTemplateSpec) { s.LimitRange.Metadata.Name = limits })
		return newTemplate(name, modify...)
	}
	selecting := func(label string) func(*v1.NamespaceTemplateSpec) {
		return func(s *v1.NamespaceTemplateSpec) { s.NamespaceSelector.MatchLabels[templateLabel] = label }
	}

	wantLimits("a", "")
	put(limits("a", "l1"))
	wantLimits("a", "l1")
	put(limits("a", "l2"))
	wantLimits("a", "l2")
	wantLimits("b", "")
	put(limits("default", "l3", asDefault))
	wantLimits("b", "l3")
	wantLimits("a", "l2")
	put(limits("default-2", "l4", asDefault))
	wantRefused("b", `the namespace templates "default" and "default-2" have no selector, but only one template can be the default`)
	wantLimits("a", "l2")
	put(limits("a-2", "l5", selecting("a")))
	wantRefused("a", `the namespace templates "a" and "a-2" select it by its labels, but only one template can apply`)
	remove("a")
	wantLimits("a", "l5")
	remove("a-2")
	remove("default-2")
	wantLimits("a", "l3")
	put(limits("a", "l6", selecting("a")))
	remove("default")
	wantLimits("a", "l6")
	wantLimits("b", "")
}

// TestNamespaceTemplateRace creates Namespaces through two servers while a third client
// changes their templates. What each Namespace was created with is read from etcd.
func TestNamespaceTemplateRace(t *testing.T) {
	t.Parallel()
	const workers, each = 4, 25
	etcd := storagetest.StartGRPC(t)
	first, second, proxy := startTwo(t, etcd, nil)
	proxy.SetDelay(20 * time.Millisecond)
	ctx, stop := context.WithCancel(t.Context())
	created := make(chan struct{}, 2*workers*each)
	// awaitCreate returns when a Namespace was created after the last change.
	awaitCreate := func() {
		for range len(created) {
			<-created
		}
		select {
		case <-created:
		case <-ctx.Done():
		}
	}
	templates := first.Client(t).TenancyV1().NamespaceTemplates()
	var changing, creating sync.WaitGroup
	changing.Go(func() {
		// At each moment there is one template, or none. The LimitRange has its number.
		for i := 0; ctx.Err() == nil; i++ {
			template := newTemplate("t", asDefault, func(s *v1.NamespaceTemplateSpec) { s.LimitRange.Metadata.Name = fmt.Sprint("l-", i) })
			if _, err := templates.Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
				t.Error(err)
				return
			}
			awaitCreate()
			template.Spec.LimitRange.Metadata.Name = fmt.Sprint("l-", i, "-changed")
			if _, err := templates.Update(t.Context(), template, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
			awaitCreate()
			if err := templates.Delete(t.Context(), "t", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			awaitCreate()
		}
	})
	for i, server := range []*harness.Borough{first, second} {
		namespaces := server.Client(t).TenancyV1().Namespaces()
		for worker := range workers {
			creating.Go(func() {
				for n := range each {
					name := fmt.Sprintf("ns-%d-%d-%d", i, worker, n)
					if _, err := namespaces.Create(t.Context(), labelled(name, "x"), metav1.CreateOptions{}); err != nil {
						t.Error(err)
					}
					created <- struct{}{}
				}
			})
		}
	}
	creating.Wait()
	stop()
	changing.Wait()

	client := storagetest.NewClient(t, etcd)
	with, without := replayTemplates(t, client)
	t.Logf("%d Namespaces with the content of a template, %d without", with, without)
	if with+without < 2*workers*each || with == 0 || without == 0 {
		t.Error("the test has not shown both")
	}
}
