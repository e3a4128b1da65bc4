// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitrange_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistrytest "k8s.io/apiserver/pkg/registry/generic/testing"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	"github.com/borough-io/borough/pkg/registry/standard"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// newREST returns the storage of a server that has the Namespaces of the tests, those of
// the library included.
func newREST(t *testing.T) *standard.REST {
	t.Helper()
	r := registrytest.New(t, storagetest.StartEmbedded(t))
	for _, name := range []string{metav1.NamespaceDefault, "test", "not-default2", "bar1", "bar2", "bar3", "bar4"} {
		r.Namespace = name
		r.CreateNamespace(t)
	}
	return r.LimitRanges
}

func newLimitRange(name string) *tenancy.LimitRange {
	return &tenancy.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypePod,
			Min:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
			Max:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		}}},
	}
}

// TestContract runs the tests that the library has for every registry.
func TestContract(t *testing.T) {
	contract := func(t *testing.T) *genericregistrytest.Tester {
		return genericregistrytest.New(t, newREST(t).Store).AllowCreateOnUpdate()
	}
	valid := func() *tenancy.LimitRange { return newLimitRange("foo") }
	t.Run("create", func(t *testing.T) {
		unnamed, invalid := newLimitRange(""), newLimitRange("_-a123-a_")
		unnamed.Namespace, invalid.Namespace = "", "" // the test sets its own
		contract(t).GeneratesName().TestCreate(unnamed, invalid)
	})
	t.Run("update", func(t *testing.T) {
		contract(t).TestUpdate(valid(),
			func(obj runtime.Object) runtime.Object {
				obj.(*tenancy.LimitRange).Spec.Limits[0].Max[corev1.ResourceCPU] = resource.MustParse("3")
				return obj
			},
			func(obj runtime.Object) runtime.Object {
				obj.(*tenancy.LimitRange).Spec.Limits[0].Type = "Foo" // is invalid
				return obj
			})
	})
	t.Run("delete", func(t *testing.T) { contract(t).TestDelete(valid()) })
	t.Run("get", func(t *testing.T) { contract(t).TestGet(valid()) })
	t.Run("list", func(t *testing.T) { contract(t).TestList(valid()) })
	t.Run("watch", func(t *testing.T) {
		watched := valid()
		watched.Namespace = "test" // where the test puts it
		contract(t).TestWatch(watched,
			nil, []labels.Set{{"foo": "bar"}},
			[]fields.Set{{"metadata.name": "foo"}}, []fields.Set{{"metadata.name": "bar"}})
	})
}

func requestContext() context.Context {
	return genericapirequest.WithNamespace(genericapirequest.NewContext(), metav1.NamespaceDefault)
}

func TestUnconditionalUpdateKeepsIdentity(t *testing.T) {
	storage, ctx := newREST(t), requestContext()
	created, err := storage.Create(ctx, newLimitRange("foo"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	changed := newLimitRange("foo") // has no resourceVersion
	changed.Spec.Limits[0].Max[corev1.ResourceCPU] = resource.MustParse("5")
	got, wasCreated, err := storage.Update(ctx, "foo", rest.DefaultUpdatedObjectInfo(changed),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil || wasCreated {
		t.Fatalf("created=%t, err=%v", wasCreated, err)
	}
	if got, want := got.(*tenancy.LimitRange).UID, created.(*tenancy.LimitRange).UID; got != want {
		t.Errorf("the UID changed from %s to %s", want, got)
	}
	if diff := cmp.Diff(changed.Spec, got.(*tenancy.LimitRange).Spec); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestInvalidNamesTheField(t *testing.T) {
	lr := newLimitRange("foo")
	lr.Spec.Limits[0].Min[corev1.ResourceCPU] = resource.MustParse("3")
	_, err := newREST(t).Create(requestContext(), lr, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	want := `LimitRange.tenancy.borough.io "foo" is invalid: spec.limits[0].min[cpu]: Invalid value: "3": min value 3 is greater than max value 2`
	if !apierrors.IsInvalid(err) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestDeleteCollection(t *testing.T) {
	storage, ctx := newREST(t), requestContext()
	for _, name := range []string{"a", "b", "c"} {
		if _, err := storage.Create(ctx, newLimitRange(name), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := storage.DeleteCollection(ctx, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &internalversion.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	left, err := storage.List(ctx, &internalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if items := left.(*tenancy.LimitRangeList).Items; len(items) > 0 {
		t.Errorf("%d are left", len(items))
	}
}

func TestTable(t *testing.T) {
	lr := newLimitRange("foo")
	lr.CreationTimestamp = metav1.NewTime(time.Date(2026, 7, 1, 12, 30, 0, 0, time.FixedZone("CEST", 2*60*60)))
	table, err := newREST(t).ConvertToTable(t.Context(), &tenancy.LimitRangeList{Items: []tenancy.LimitRange{*lr}}, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	if got := strings.Join(columns, ", "); got != "Name, Created At" {
		t.Errorf("the columns are %s", got)
	}
	if diff := cmp.Diff([]any{"foo", "2026-07-01T10:30:00Z"}, table.Rows[0].Cells); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
