#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the binaries into bin/, without debug information. Arguments are passed to go build: `hack/build.sh -race -o dir/`.
# GO_LDFLAGS has further flags of the linker.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(hack/version.sh) # a failure in an argument would be ignored
go build -ldflags "-s -w $version ${GO_LDFLAGS:-}" -o bin/ "$@" ./cmd/...
