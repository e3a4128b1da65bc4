#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the tools that hack/tools/go.mod pins into .cache/tools.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p .cache/tools
GOBIN=$PWD/.cache/tools go -C hack/tools install tool
