#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that all Go files are formatted.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

# gofmt fails if it finds a difference or cannot read a file.
if ! hack/list-files.sh '*.go' | xargs -0 gofmt -s -d; then
    echo "verify-format: run make update-format" >&2
    exit 1
fi
