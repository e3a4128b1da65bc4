// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package examples has manifests and a program that show how to use Borough.
package examples

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/borough-io/borough/pkg/apis/tenancy/install"
)

// TestManifests checks that every manifest decodes into the API's types without
// unknown or duplicate fields.
func TestManifests(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()

	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("found no manifests")
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
