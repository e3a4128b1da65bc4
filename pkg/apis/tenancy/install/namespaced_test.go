// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
)

// TestNamespacedKinds checks that the kinds that can be listed are Namespaces, their
// templates, Projects and the namespaced kinds, in both versions, and that these have clients.
func TestNamespacedKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	informers := externalversions.NewSharedInformerFactory(fake.NewClientset(), 0)
	want := []string{"Namespace", "NamespaceTemplate", "Project"}
	for _, kind := range tenancy.NamespacedKinds() {
		want = append(want, kind.Kind)
		if _, err := informers.ForResource(v1.SchemeGroupVersion.WithResource(kind.Resource)); err != nil {
			t.Errorf("the type of %s needs +genclient, and make update: %v", kind.Kind, err)
		}
	}
	slices.Sort(want)
	for _, gv := range []schema.GroupVersion{tenancy.SchemeGroupVersion, v1.SchemeGroupVersion} {
		known := scheme.KnownTypes(gv)
		var got []string
		for kind := range maps.Keys(known) {
			if _, listed := known[kind+"List"]; listed && !strings.HasSuffix(kind, "List") {
				got = append(got, kind)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("kinds (-NamespacedKinds +AddToScheme of %s):\n%s", gv, diff)
		}
	}
}
