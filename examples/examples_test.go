// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package examples holds manifests and a program that show how Borough is used.
package examples

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/borough-io/borough/pkg/apis/tenancy/install"
)

// TestManifests checks that every manifest decodes into the API's types with no
// field unknown and none given twice.
func TestManifests(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()

	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("there are no manifests")
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			manifest, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := decoder.Decode(manifest, nil, nil); err != nil {
				t.Errorf("decode: %v", err)
			}
		})
	}
}
