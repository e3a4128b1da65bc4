#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the binaries into bin/. Arguments are passed to go build:
# `hack/build.sh -race`.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p bin
go build -ldflags "$(hack/version.sh)" -o bin/ "$@" ./cmd/...
