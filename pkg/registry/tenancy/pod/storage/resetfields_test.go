// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestResetFields checks which fields a write can own through each storage. As
// in Kubernetes, all can be owned through those that are not in the table.
func TestResetFields(t *testing.T) {
	var (
		label    = fieldpath.MakePathOrDie("metadata", "labels", "a")
		owners   = fieldpath.MakePathOrDie("metadata", "ownerReferences")
		deletion = fieldpath.MakePathOrDie("metadata", "deletionTimestamp")
		image    = fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "c"), "image")
		phase    = fieldpath.MakePathOrDie("status", "phase")
	)
	sent := fieldpath.NewSet(label, owners, deletion, image, phase)

	s := newStorage(t)
	for _, tc := range []struct {
		name    string
		storage rest.ResetFieldsStrategy
		want    *fieldpath.Set
	}{
		{"pods", s.Pod, fieldpath.NewSet(label, owners, deletion, image)},
		{"pods/status", s.Status, fieldpath.NewSet(label, phase)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			version, found := fieldpath.NewExcludeFilterSetMap(tc.storage.GetResetFields())[fieldpath.APIVersion(v1.SchemeGroupVersion.String())]
			if !found {
				t.Fatal("no filter for the version")
			}
			if got := version.Filter(sent); !got.Equals(tc.want) {
				t.Errorf("fields that can be owned (-want +got):\n%s", cmp.Diff(tc.want.String(), got.String()))
			}
		})
	}
}
