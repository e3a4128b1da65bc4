// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package objectinfo

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

func TestChecked(t *testing.T) {
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
			if _, err := Checked(info).UpdatedObject(test.ctx, &tenancy.Pod{}); !test.want(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}
