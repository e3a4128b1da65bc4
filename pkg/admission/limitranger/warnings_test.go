// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	clienttesting "k8s.io/client-go/testing"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/precondition"
)

// recorder keeps the warnings of a request.
type recorder struct{ texts []string }

func (r *recorder) AddWarning(_, text string) { r.texts = append(r.texts, text) }

// minCPU makes a LimitRange by which containers have to request an amount of CPU.
func minCPU(name, quantity string) *v1.LimitRange {
	return limitRange(name, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: quantities("cpu", quantity)})
}

// warned checks the warnings of a write of the LimitRange, and how often
// storage was read for that.
func (w *fixture) warned(when string, operation admission.Operation, written *v1.LimitRange, reads int, want ...string) {
	w.Helper()
	before := lists(w.storage)
	var got recorder
	request := admission.NewAttributesRecord(&tenancy.LimitRange{ObjectMeta: written.ObjectMeta, Spec: written.Spec}, nil,
		v1.SchemeGroupVersion.WithKind("LimitRange"), "ns", written.Name,
		v1.SchemeGroupVersion.WithResource("limitranges"), "", operation, nil, false, nil)
	ctx, _ := precondition.NewAttempt(warning.WithWarningRecorder(w.Context(), &got), w, 0)
	if err := w.plugin.Validate(ctx, request, nil); err != nil {
		w.Fatal(err)
	}
	if diff := cmp.Diff(want, got.texts); diff != "" {
		w.Errorf("%s: -want +got\n%s", when, diff)
	}
	if got := lists(w.storage) - before; got != reads {
		w.Errorf("%s: storage was read %d times, not %d", when, got, reads)
	}
}

const contradiction = `LimitRanges "a" and "b" contradict each other: min cpu per Container is 2 in "b", but max cpu per Container is 1 in "a"`

func TestWarnings(t *testing.T) {
	withFixture(t, func(w *fixture) {
		w.warned("create", admission.Create, minCPU("b", "2"), 0, contradiction)
	}, maxCPU("a", "1"))
	withFixture(t, func(w *fixture) {
		w.warned("update of the one", admission.Update, minCPU("b", "2"), 0, contradiction)
	}, maxCPU("a", "1"), minCPU("b", "1"))
	withFixture(t, func(w *fixture) {
		w.warned("update that ends the contradiction", admission.Update, maxCPU("a", "3"), 0)
	}, maxCPU("a", "1"), minCPU("b", "2"))
	withFixture(t, func(w *fixture) {
		w.warned("delete", admission.Delete, minCPU("b", "2"), 0)
	}, maxCPU("a", "1"), minCPU("b", "2"))
	withFixture(t, func(w *fixture) {
		w.warned("alone", admission.Create, minCPU("b", "2"), 0)
	})
}

// TestWarningsBeforeTheWatchDelivers shows that a LimitRange that the watch has not
// delivered yet is compared.
func TestWarningsBeforeTheWatchDelivers(t *testing.T) {
	withFixture(t, func(w *fixture) {
		w.put(maxCPU("a", "1"))
		w.warned("right after the other", admission.Create, minCPU("b", "2"), 1, contradiction)
	})
	withFixture(t, func(w *fixture) {
		w.remove("a")
		w.warned("right after the other went", admission.Create, minCPU("b", "2"), 1)
	}, maxCPU("a", "1"))
}

// TestWarningsAreNoReasonToFail shows that a write continues when there is nothing
// to compare with.
func TestWarningsAreNoReasonToFail(t *testing.T) {
	withFixture(t, func(w *fixture) {
		w.put(maxCPU("a", "1"))
		w.storage.PrependReactor("list", "limitranges", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("out of order")
		})
		w.warned("without storage", admission.Create, minCPU("b", "2"), 1)
	})
}

// TestWarningsAreBounded shows that a Namespace full of LimitRanges makes no
// write slow.
func TestWarningsAreBounded(t *testing.T) {
	var others []*v1.LimitRange
	for i := range 100 {
		others = append(others, maxCPU(fmt.Sprintf("l-%03d", i), "1"))
	}
	withFixture(t, func(w *fixture) {
		var want []string
		for _, other := range others[:50] {
			want = append(want, fmt.Sprintf(`LimitRanges "b" and %q contradict each other: min cpu per Container is 2 in "b", but max cpu per Container is 1 in %q`, other.Name, other.Name))
		}
		w.warned("create", admission.Create, minCPU("b", "2"), 0, want...)
	}, others...)
	for _, other := range others[:50] {
		other.Spec.Limits[0].Max = quantities("cpu", "3")
	}
	withFixture(t, func(w *fixture) {
		w.warned("the first do not contradict", admission.Create, minCPU("b", "2"), 0)
	}, others...)
}
