// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// index returns the index of images of one program, by architecture.
func index(archs []string, images map[string]v1.Image) v1.ImageIndex {
	index := v1.ImageIndex(empty.Index)
	for _, arch := range archs {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        images[arch],
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return index
}

// writeIndex writes an index to a new directory, as an OCI image layout.
func writeIndex(dir string, ref name.Tag, index v1.ImageIndex) error {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": ref.TagStr(),
	}))
}

// readIndex returns the only index in an OCI image layout.
func readIndex(dir string) (v1.ImageIndex, error) {
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("%s has %d images, not one", dir, len(manifest.Manifests))
	}
	return top.ImageIndex(manifest.Manifests[0].Digest)
}

func pushIndex(ref name.Tag, index v1.ImageIndex) error {
	return remote.WriteIndex(ref, index, remote.WithAuthFromKeychain(authn.DefaultKeychain))
}
