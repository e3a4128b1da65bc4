#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that all Go files are formatted.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

difference=$(git ls-files -z --cached --others --exclude-standard --deduplicate '*.go' | xargs -0 gofmt -s -d)
if [[ -n $difference ]]; then
    echo "$difference"
    echo "verify-format: run make update-format" >&2
    exit 1
fi
