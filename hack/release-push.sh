#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Pushes the images and the chart of a release, which hack/release.sh has made in a
# directory, to $REGISTRY (default: ghcr.io/borough-io) with the credentials of
# `docker login`: `hack/release-push.sh v0.1.0 DIRECTORY`. Prints the reference of each,
# with its digest. HELM_FLAGS are passed to helm push.
set -o errexit -o nounset -o pipefail
version=${1:?a version, such as v0.1.0}
dir=$(realpath -e "${2:?the directory of the release}")
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."
registry=${REGISTRY:-ghcr.io/borough-io}
registry=${registry,,} # the owner of a fork may have capitals, a repository of images may not

go -C hack/images run . -push "$dir/images" -tag "$version" -registry "$registry" | sed 's/:[^:/]* /@/'
# shellcheck disable=SC2086 # several flags
go -C test/kubernetes tool helm push "$dir/files/borough-${version#v}.tgz" "oci://$registry/charts" ${HELM_FLAGS:-} 2>&1 |
    awk -v chart="$registry/charts/borough" '
        $1 == "Digest:" { print chart "@" $2; found = 1; next }
        { print >"/dev/stderr" } # such as an error
        END { exit !found }
    '
