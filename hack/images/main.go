// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Command images makes a container image of each binary, without Docker, and writes it
// to an archive or pushes it to a registry. Of several architectures it makes an index.
// The image depends only on the binary and its licenses, so if these are equal, so is the
// digest. hack/images.sh builds the binaries and runs it.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("images: ")
	var (
		o     options
		archs = flag.String("arch", "", "the architectures that they are built for, separated by commas")
	)
	flag.StringVar(&o.bin, "bin", "", "the directory with a directory of binaries for each architecture")
	flag.StringVar(&o.tag, "tag", "latest", "the tag of the images")
	flag.StringVar(&o.registry, "registry", "", "push the images to this registry, with the credentials of docker login")
	flag.StringVar(&o.out, "out", "", "without a registry, write each image to this directory: an archive for docker load, or of several architectures an OCI image layout")
	flag.StringVar(&o.push, "push", "", "push the OCI image layouts in this directory instead of making images")
	flag.StringVar(&o.sbom, "sbom", "", "write an SPDX document of each image to this directory")
	flag.StringVar(&o.created, "created", "1970-01-01T00:00:00Z", "the time in the SPDX documents")
	flag.Parse()
	o.archs = strings.Split(*archs, ",")
	for _, program := range programs {
		ref, digest, err := o.publish(program)
		if err != nil {
			log.Fatalf("publish %s: %v", program.name, err)
		}
		fmt.Println(ref, digest)
	}
	// Not to the standard output, from which other scripts read the digests.
	if text := o.load(); text != "" {
		log.Print(text)
	}
}

// options are the flags.
type options struct {
	bin, tag, registry, out, push, sbom, created string

	archs []string
}

// publish makes the images of a program, or reads them, and publishes them. It returns
// their name, and the digest of the image or of the index.
func (o options) publish(p program) (name.Tag, v1.Hash, error) {
	ref, err := name.NewTag(path.Join(o.registry, p.name) + ":" + o.tag)
	if err != nil {
		return ref, v1.Hash{}, err
	}
	published, err := o.publishAs(ref, p)
	if err != nil {
		return ref, v1.Hash{}, err
	}
	digest, err := published.Digest()
	return ref, digest, err
}

// hashed is an image or an index.
type hashed interface{ Digest() (v1.Hash, error) }

func (o options) publishAs(ref name.Tag, p program) (hashed, error) {
	if o.push != "" {
		built, err := readIndex(filepath.Join(o.push, p.name))
		if err != nil {
			return nil, err
		}
		return built, pushIndex(ref, built)
	}
	images := map[string]v1.Image{}
	for _, arch := range o.archs {
		image, err := o.image(p, arch)
		if err != nil {
			return nil, fmt.Errorf("linux/%s: %w", arch, err)
		}
		images[arch] = image
	}
	if len(o.archs) == 1 {
		image := images[o.archs[0]]
		return image, publishImage(image, ref, o.registry, filepath.Join(o.out, p.name+".tar"))
	}
	all := index(o.archs, images)
	if o.registry != "" {
		return all, pushIndex(ref, all)
	}
	return all, writeIndex(filepath.Join(o.out, p.name), ref, all)
}

// image makes the image of a program for an architecture, and its SPDX document.
func (o options) image(p program, arch string) (v1.Image, error) {
	bin := filepath.Join(o.bin, arch)
	image, err := p.image(bin, arch)
	if err != nil || o.sbom == "" {
		return image, err
	}
	document, err := sbom(p, bin, arch, o.tag, o.created, image)
	if err != nil {
		return nil, err
	}
	return image, document.write(filepath.Join(o.sbom, fmt.Sprintf("%s_linux_%s.spdx.json", p.name, arch)))
}

// publishImage pushes an image or, without a registry, writes it to a file.
func publishImage(image v1.Image, ref name.Tag, registry, file string) error {
	if registry != "" {
		return remote.Write(ref, image, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return tarball.WriteToFile(file, ref, image)
}
