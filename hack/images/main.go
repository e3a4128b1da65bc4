// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Command images makes a container image of each binary, without Docker, and writes it
// to an archive for `docker load` or pushes it to a registry. The image depends only on
// the binary, so equal binaries have images with the same digest. hack/images.sh builds
// the binaries and runs it.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("images: ")
	var (
		bin      = flag.String("bin", "", "the directory of the binaries")
		arch     = flag.String("arch", "", "the architecture that they are built for")
		tag      = flag.String("tag", "latest", "the tag of the images")
		registry = flag.String("registry", "", "push the images to this registry, with the credentials of docker login")
		out      = flag.String("out", "", "without a registry, write an archive of each image to this directory")
	)
	flag.Parse()
	for _, program := range programs {
		image, err := program.image(*bin, *arch)
		if err != nil {
			log.Fatalf("make the image of %s: %v", program.name, err)
		}
		ref, err := name.NewTag(path.Join(*registry, program.name) + ":" + *tag)
		if err != nil {
			log.Fatal(err)
		}
		if err := publish(image, ref, *registry, filepath.Join(*out, program.name+".tar")); err != nil {
			log.Fatalf("publish %s: %v", ref, err)
		}
		digest, err := image.Digest()
		if err != nil {
			log.Fatalf("compute the digest of %s: %v", ref, err)
		}
		fmt.Println(ref, digest)
	}
}

// publish pushes an image or, without a registry, writes it to a file.
func publish(image v1.Image, ref name.Tag, registry, file string) error {
	if registry != "" {
		return remote.Write(ref, image, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return tarball.WriteToFile(file, ref, image)
}
