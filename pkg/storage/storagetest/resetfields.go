// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// CheckOwnable checks which of the fields that are sent a write can own through a storage.
func CheckOwnable(t testing.TB, storage rest.ResetFieldsStrategy, sent, want *fieldpath.Set) {
	t.Helper()
	version, found := fieldpath.NewExcludeFilterSetMap(storage.GetResetFields())[fieldpath.APIVersion(v1.SchemeGroupVersion.String())]
	if !found {
		t.Fatal("no filter for the version")
	}
	if got := version.Filter(sent); !got.Equals(want) {
		t.Errorf("fields that can be owned (-want +got):\n%s", cmp.Diff(want.String(), got.String()))
	}
}
