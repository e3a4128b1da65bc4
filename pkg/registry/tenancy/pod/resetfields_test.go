// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"testing"

	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/borough-io/borough/pkg/storage/storagetest"
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
		t.Run(tc.name, func(t *testing.T) { storagetest.CheckOwnable(t, tc.storage, sent, tc.want) })
	}
}
