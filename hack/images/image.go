// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the ID of the user and the group that the containers run as.
const user, userAndGroup = 65532, "65532:65532"

// licensesFile has the licenses of what is in the binaries.
const licensesFile = "LICENSES"

// program is a binary with an image, which has nothing else but licenses, CAs and its data
// directory.
type program struct {
	name    string
	dataDir string // relative to the root, or empty
}

var programs = []program{
	{name: "borough-apiserver", dataDir: "var/lib/borough"}, // the default of --data-dir
	{name: "borough-controller-manager"},
	{name: "borough-source"},
}

// labels are those of every image.
var labels = map[string]string{
	"org.opencontainers.image.source":   "https://github.com/borough-io/borough",
	"org.opencontainers.image.licenses": "Apache-2.0",
}

// image returns the image of a program.
func (p program) image(bin, arch string) (v1.Image, error) {
	content, err := os.ReadFile(filepath.Join(bin, p.name))
	if err != nil {
		return nil, err
	}
	licenses, err := os.ReadFile(filepath.Join(bin, licensesFile))
	if err != nil {
		return nil, err
	}
	files, err := p.layer(content, licenses)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config = v1.Config{User: userAndGroup, Entrypoint: []string{"/" + p.name}, Labels: labels}
	if p.dataDir != "" {
		config.Config.WorkingDir = "/" + p.dataDir
	}
	return mutate.ConfigFile(image, config)
}

// layer returns the files of an image as a tar archive, without times.
func (p program) layer(binary, licenses []byte) ([]byte, error) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	add := func(header tar.Header, content []byte) error {
		header.Size = int64(len(content))
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	addDirs := func(path string) (err error) {
		for i, c := range path {
			if c == '/' {
				err = errors.Join(err, add(tar.Header{Typeflag: tar.TypeDir, Name: path[:i+1], Mode: 0o755}, nil))
			}
		}
		return err
	}
	err := errors.Join(
		add(tar.Header{Typeflag: tar.TypeReg, Name: p.name, Mode: 0o755}, binary),
		add(tar.Header{Typeflag: tar.TypeReg, Name: licensesFile, Mode: 0o644}, licenses),
		addDirs(caFile),
		add(tar.Header{Typeflag: tar.TypeReg, Name: caFile, Mode: 0o644}, caCertificates()))
	if p.dataDir != "" {
		err = errors.Join(err,
			addDirs(p.dataDir),
			add(tar.Header{Typeflag: tar.TypeDir, Name: p.dataDir + "/", Mode: 0o700, Uid: user, Gid: user}, nil))
	}
	err = errors.Join(err, w.Close())
	return layer.Bytes(), err
}
