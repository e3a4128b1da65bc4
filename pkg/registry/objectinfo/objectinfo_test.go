// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package objectinfo

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// TestStrategicMergePatch checks that a patch is not merged into lists that are
// too long for it.
func TestStrategicMergePatch(t *testing.T) {
	info := BadRequestOnInvalidPatch(rest.DefaultUpdatedObjectInfo(&tenancy.Pod{}))
	for _, test := range []struct {
		lists, elements int
		strategic, ok   bool
	}{
		{1, 2000, true, true},
		{1, 2001, true, false},
		{1, 2001, false, true},
		{40, 300, true, true},
		{50, 300, true, false},
	} {
		old := &tenancy.Pod{Spec: corev1.PodSpec{}}
		for range test.lists {
			old.Spec.Volumes = append(old.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{Items: make([]corev1.KeyToPath, test.elements-1)}}})
		}
		ctx := t.Context()
		if test.strategic {
			ctx = WithPatchType(ctx, types.StrategicMergePatchType)
		}
		if _, err := info.UpdatedObject(ctx, old); err != nil != !test.ok || err != nil && !apierrors.IsBadRequest(err) {
			t.Errorf("%+v: got %v", test, err)
		}
	}
}

func TestBadRequestOnInvalidPatch(t *testing.T) {
	plain := errors.New("the patch does not fit")
	conflict := apierrors.NewConflict(tenancy.Resource("pods"), "p", plain)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, test := range []struct {
		name    string
		ctx     context.Context
		version string
		err     error
		want    func(error) bool
	}{
		{"an object", t.Context(), "12", nil, func(err error) bool { return err == nil }},
		{"without resourceVersion", t.Context(), "", nil, func(err error) bool { return err == nil }},
		{"resourceVersion", t.Context(), "x", nil, apierrors.IsBadRequest},
		{"negative resourceVersion", t.Context(), "-1", nil, apierrors.IsBadRequest},
		{"error without a code", t.Context(), "", plain, apierrors.IsBadRequest},
		{"error with a code", t.Context(), "", conflict, apierrors.IsConflict},
		{"request that has ended", ended, "", plain, func(err error) bool { return err == plain }},
	} {
		t.Run(test.name, func(t *testing.T) {
			updated := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: test.version}}
			info := rest.DefaultUpdatedObjectInfo(updated, func(context.Context, runtime.Object, runtime.Object) (runtime.Object, error) {
				return updated, test.err
			})
			if _, err := BadRequestOnInvalidPatch(info).UpdatedObject(test.ctx, &tenancy.Pod{}); !test.want(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}
