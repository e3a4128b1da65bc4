#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds an image of each binary with Docker. The image has the name of the binary
# and the tag $TAG (default: latest).
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for image in borough-apiserver borough-controller-manager; do
    docker build --target "$image" --build-arg LDFLAGS="$(hack/version.sh)" --tag "$image:${TAG:-latest}" .
done
