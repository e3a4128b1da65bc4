// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

func TestGeneratedNameHasItsLabel(t *testing.T) {
	storage, ctx := newStorage(t), newContext()
	ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: strings.Repeat("a", 60)}}
	obj, err := storage.Namespace.Create(ctx, ns, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := obj.(*tenancy.Namespace)
	if len(got.Name) != 63 || got.Labels[tenancy.LabelMetadataName] != got.Name {
		t.Errorf("name %q, labels %v", got.Name, got.Labels)
	}
}

// generator returns names that end in 1, 2 and so on.
type generator struct {
	rest.RESTCreateStrategy
	next *int
}

func (g generator) GenerateName(base string) string {
	*g.next++
	return fmt.Sprint(base, *g.next)
}

// TestGeneratedNameIsTaken generates names of Namespaces that exist: eight at most, as Kubernetes.
func TestGeneratedNameIsTaken(t *testing.T) {
	storage, ctx := newStorage(t), newContext()
	next := 0
	storage.Namespace.store.CreateStrategy = generator{storage.Namespace.store.CreateStrategy, &next}
	generate := func() (runtime.Object, error) {
		next = 0
		ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "n-"}}
		return storage.Namespace.Create(ctx, ns, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	}
	const attempts = 8
	for i := range attempts {
		obj, err := generate()
		if err != nil || obj.(*tenancy.Namespace).Name != fmt.Sprint("n-", i+1) {
			t.Fatalf("%d: got %v, error %v", i, obj, err)
		}
	}
	if _, err := generate(); !apierrors.IsAlreadyExists(err) || next != attempts {
		t.Errorf("after %d attempts: %v", next, err)
	}
}
