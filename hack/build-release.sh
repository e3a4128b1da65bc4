#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the binaries of a release, for $GOOS and $GOARCH; `hack/build-release.sh -o dir/`.
# Nothing of the directory, of the machine or of the settings of Go gets into them. They
# are optimized with hack/server.pgo, so every package is compiled once more than for the
# tests.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Defaults are written out, because an empty variable does not override go env -w. That of
# GOEXPERIMENT has no name.
export CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 GOFLAGS=-mod=readonly GOFIPS140=off GOEXPERIMENT=
GO_LDFLAGS="" exec hack/build.sh -trimpath -buildvcs=false -pgo="$PWD/hack/server.pgo" "$@"
