#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the image of each binary and prints its name and digest, which is the same
# for all builds of a commit in complete clones, with the same release of Go. The image
# has the name of the binary and the tag $TAG (default: latest). It is pushed to
# $REGISTRY if that is set, with the credentials of `docker login`, and otherwise
# written to bin/images or the given directory, as an archive for `docker load`. $ARCH
# is the architecture of the nodes (default: that of this machine). With several,
# separated by commas, it is an index, and written as an OCI image layout. Where they
# are, and how to load them, is printed to the standard error. $SBOM is a directory for
# an SPDX document of each image.
set -o errexit -o nounset -o pipefail
out=$(realpath -m "${1:-$(dirname "${BASH_SOURCE[0]}")/../bin/images}")
sbom=${SBOM:+$(realpath -m "$SBOM")}
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Modules other than the root one do not name the toolchain.
GOTOOLCHAIN=$(sed -n 's/^toolchain //p' go.mod)
export GOTOOLCHAIN
arch=${ARCH:-$(go env GOHOSTARCH)}

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
for a in ${arch//,/ }; do
    GOOS=linux GOARCH=$a hack/build-release.sh -o "$bin/$a/"
    GOOS=linux GOARCH=$a hack/licenses.sh >"$bin/$a/LICENSES"
done
version=$(hack/version.sh)
go -C hack/images run . -bin "$bin" -arch "$arch" -tag "${TAG:-latest}" -registry "${REGISTRY:-}" -out "$out" -sbom "$sbom" -created "${version##*buildDate=}"
