// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
)

func TestTrim(t *testing.T) {
	newLimitRange := func(name, cpu string, items int) *v1.LimitRange {
		item := corev1.LimitRangeItem{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("1Gi")},
		}
		return &v1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, ResourceVersion: "7",
				Annotations: map[string]string{"a": "b"}, Labels: map[string]string{"c": "d"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
			},
			Spec: corev1.LimitRangeSpec{Limits: slices.Repeat([]corev1.LimitRangeItem{item}, items)},
		}
	}
	trimmer := newTrimmer()
	trim := func(name, cpu string, items int) *v1.LimitRange {
		t.Helper()
		want := newLimitRange(name, cpu, items)
		want.ObjectMeta = metav1.ObjectMeta{Name: name, ResourceVersion: "7"}
		got, err := trimmer.trim(newLimitRange(name, cpu, items))
		if err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		return got.(*v1.LimitRange)
	}
	share := func(a, b *v1.LimitRange) bool {
		return reflect.ValueOf(a.Spec.Limits).Pointer() == reflect.ValueOf(b.Spec.Limits).Pointer()
	}
	first, equal, other := trim("a", "1", 1), trim("b", "1", 1), trim("a", "2", 1)
	if !share(first, equal) {
		t.Error("equal specs are not shared")
	}
	if share(first, other) {
		t.Error("different specs are shared")
	}
	if share(trim("a", "1", 100), trim("b", "1", 100)) {
		t.Error("large specs are shared")
	}
	if got, err := trimmer.trim(cache.DeletedFinalStateUnknown{Key: "a"}); err != nil || got != (cache.DeletedFinalStateUnknown{Key: "a"}) {
		t.Errorf("got %v, %v of another object", got, err)
	}
}

// TestTrimRead reads a LimitRange from storage.
func TestTrimRead(t *testing.T) {
	reads := newReads()
	reads.client = fake.NewClientset(&v1.LimitRange{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "a", Annotations: map[string]string{"large": "annotation"},
	}}).TenancyV1()
	found, err := reads.notOlderThan(t.Context(), "ns", 1)
	if err != nil || len(found.limitRanges) != 1 {
		t.Fatalf("got %+v, %v", found, err)
	}
	if annotations := found.limitRanges[0].Annotations; annotations != nil {
		t.Errorf("the annotations are kept: %v", annotations)
	}
}
