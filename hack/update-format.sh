#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Formats all Go files.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files -z --cached --others --exclude-standard --deduplicate '*.go' |
    while read -r -d '' file; do
        [[ ! -e $file ]] || printf '%s\0' "$file" # removed, but still in the index
    done |
    xargs -0 gofmt -s -w
