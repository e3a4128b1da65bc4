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

// TestResetFields checks which fields a server-side apply can own through each
// storage.
func TestResetFields(t *testing.T) {
	container := func(list string, path ...any) fieldpath.Path {
		return fieldpath.MakePathOrDie(append([]any{"spec", list, fieldpath.KeyByFields("name", "c")}, path...)...)
	}
	var (
		label     = fieldpath.MakePathOrDie("metadata", "labels", "a")
		owners    = fieldpath.MakePathOrDie("metadata", "ownerReferences")
		deletion  = fieldpath.MakePathOrDie("metadata", "deletionTimestamp")
		resources = fieldpath.MakePathOrDie("spec", "resources", "limits")
		image     = container("containers", "image")
		cpu       = container("containers", "resources", "limits", "cpu")
		policy    = container("containers", "resizePolicy")
		initCPU   = container("initContainers", "resources", "limits", "cpu")
		ephemeral = container("ephemeralContainers", "image")
		phase     = fieldpath.MakePathOrDie("status", "phase")
	)
	sent := fieldpath.NewSet(label, owners, deletion, resources, image, cpu, policy, initCPU, ephemeral, phase)

	s := newStorage(t)
	for _, tc := range []struct {
		name    string
		storage rest.Storage
		want    *fieldpath.Set
	}{
		{"pods", s.Pod, sent.Difference(fieldpath.NewSet(phase))},
		{"pods/status", s.Status, fieldpath.NewSet(label, phase)},
		{"pods/resize", s.Resize, fieldpath.NewSet(resources, cpu, policy, initCPU)},
		{"pods/ephemeralcontainers", s.EphemeralContainers, fieldpath.NewSet(ephemeral)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var filters map[fieldpath.APIVersion]fieldpath.Filter
			fields, byFields := tc.storage.(rest.ResetFieldsStrategy)
			filter, byFilter := tc.storage.(rest.ResetFieldsFilterStrategy)
			switch {
			case byFields && byFilter:
				t.Fatal("the storage has both kinds of reset fields, which the library refuses")
			case byFields:
				filters = fieldpath.NewExcludeFilterSetMap(fields.GetResetFields())
			case byFilter:
				filters = filter.GetResetFieldsFilter()
			}
			version, found := filters[fieldpath.APIVersion(v1.SchemeGroupVersion.String())]
			if !found {
				t.Fatalf("no filter for the version: %v", filters)
			}
			if got := version.Filter(sent); !got.Equals(tc.want) {
				t.Errorf("fields that can be owned (-want +got):\n%s", cmp.Diff(tc.want.String(), got.String()))
			}
		})
	}
}
