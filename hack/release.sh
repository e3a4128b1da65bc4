#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes everything that a release publishes from HEAD, in a directory:
# `hack/release.sh v0.1.0 DIRECTORY`. All of it except the time in the archive of the
# chart is the same for all runs on a commit. $REGISTRY is where the chart finds the
# images (default: ghcr.io/borough-io).
#
#   files/    the binaries for Linux and macOS, the licenses of what is in them, the
#             chart, an SPDX document of each image, and SHA256SUMS of them
#   images/   an OCI image layout of each image, for amd64 and arm64, to push
#   digests   the names of the images, and their digests
#   notes.md  the section in CHANGELOG.md
#
# Without the tag in the repository it is a trial, and may be Unreleased, as may a
# pre-release.
set -o errexit -o nounset -o pipefail
version=${1:?a version, such as v0.1.0}
out=$(realpath -m "${2:?a directory}")
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."
registry=${REGISTRY:-ghcr.io/borough-io}
registry=${registry,,} # the owner of a fork may have capitals, a repository of images may not
fail() { echo "release: $1" >&2; exit 1; }

[[ $version =~ ^v(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}(-[0-9A-Za-z.-]+)?$ ]] || fail "$version is not a semantic version, such as v0.1.0"
[[ ! -e $out ]] || fail "$out exists"
commit=$(git rev-parse HEAD)
if tagged=$(git rev-parse --verify --quiet "$version^{commit}"); then
    [[ $tagged == "$commit" ]] || fail "$version is another commit than HEAD"
    [[ $version == *-* ]] || git grep -qE "^## \[${version#v}\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" "$commit" -- CHANGELOG.md || fail "CHANGELOG.md has no date for $version"
fi

# A clone, so that only what is committed is in a release, and the version is that of
# the tag.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
git clone --quiet . "$tmp/borough"
cd "$tmp/borough"
git -c advice.detachedHead=false checkout --quiet "$commit"
[[ $tagged ]] || git tag --no-sign "$version"
# Of all tags of a commit, hack/version.sh would take any.
git tag --points-at HEAD | while read -r tag; do
    [[ $tag == "$version" ]] || git tag -d "$tag" >/dev/null
done
[[ $(hack/version.sh) == *"gitVersion=$version "* ]] || fail "the version of the commit is not $version: $(hack/version.sh)"

files=$out/files
mkdir -p "$files"
hack/release-notes.sh "$version" >"$out/notes.md"
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
    export GOOS=${platform%/*} GOARCH=${platform#*/}
    hack/build-release.sh -o "$tmp/$platform/"
    for binary in "$tmp/$platform"/*; do
        mv "$binary" "$files/$(basename "$binary")_${GOOS}_$GOARCH"
    done
    unset GOOS GOARCH
done
# Those for Linux are all: the binaries for macOS have no module that these do not have.
GOOS=linux hack/licenses.sh >"$files/LICENSES"
unset REGISTRY
TAG=$version ARCH=amd64,arm64 SBOM=$files hack/images.sh "$out/images" >"$out/digests"

chart=$tmp/borough/artifacts/charts/borough
sed -i -e "s#^  registry: \"\"\$#  registry: $registry#" -e "s#^  tag: latest\$#  tag: $version#" "$chart/values.yaml"
go -C test/kubernetes build -o "$tmp/helm" helm.sh/helm/v4/cmd/helm
"$tmp/helm" package "$chart" --version "${version#v}" --app-version "$version" --destination "$files" >/dev/null
images=$("$tmp/helm" template --set=source.enabled=true "$files/borough-${version#v}.tgz" | sed -n 's/^ *image: //p' | grep '/borough-') || fail "the chart cannot be rendered, or has no images"
for image in $images; do
    [[ $image == "$registry"/* ]] && grep -q "^${image#"$registry"/} " "$out/digests" || fail "the chart uses $image, which is not in the release"
done

cd "$files"
sha256sum -- * >"$tmp/SHA256SUMS"
mv "$tmp/SHA256SUMS" .
