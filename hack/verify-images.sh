#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the images of a commit can be reproduced: builds those of HEAD in two
# clones, the second with other settings of Go, and compares the digests.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset REGISTRY
for clone in one/borough another/directory; do
    git clone --quiet . "$tmp/$clone"
    "$tmp/$clone/hack/images.sh" >"$tmp/$clone.digests"
    export GOAMD64=v3 GOARM64=v9.0 GOFLAGS=-tags=netgo LC_ALL=en_US.UTF-8
done
if ! diff "$tmp"/{one/borough,another/directory}.digests; then
    echo "verify-images: two builds of one commit differ" >&2
    exit 1
fi
cat "$tmp/one/borough.digests"
