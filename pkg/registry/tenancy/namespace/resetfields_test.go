// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"testing"

	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// TestResetFields checks which fields a write can own through each storage.
func TestResetFields(t *testing.T) {
	var (
		label      = fieldpath.MakePathOrDie("metadata", "labels", "a")
		finalizers = fieldpath.MakePathOrDie("spec", "finalizers")
		protection = fieldpath.MakePathOrDie("spec", "deletionProtection")
		phase      = fieldpath.MakePathOrDie("status", "phase")
	)
	sent := fieldpath.NewSet(label, finalizers, protection, phase)
	storage := newStorage(t)
	for name, tc := range map[string]struct {
		storage rest.ResetFieldsStrategy
		want    *fieldpath.Set
	}{
		"namespaces":          {storage.Namespace, fieldpath.NewSet(label, finalizers, protection)},
		"namespaces/status":   {storage.Status, fieldpath.NewSet(label, phase)},
		"namespaces/finalize": {storage.Finalize, fieldpath.NewSet(label, finalizers)},
	} {
		t.Run(name, func(t *testing.T) { storagetest.CheckOwnable(t, tc.storage, sent, tc.want) })
	}
}
