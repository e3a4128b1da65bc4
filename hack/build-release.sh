#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the binaries of a release, for $GOOS and $GOARCH; `hack/build-release.sh -o dir/`.
# Nothing of the directory or of the machine gets into them. They are optimized with
# hack/server.pgo, so every package is compiled once more than for the tests.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

LDFLAGS="" CGO_ENABLED=0 exec hack/build.sh -trimpath -buildvcs=false -pgo="$PWD/hack/server.pgo" "$@"
