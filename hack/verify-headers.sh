#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that source files begin with the copyright and license lines. Only an
# interpreter line or a build constraint may precede them.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/list-files.sh '*.go' '*.sh' '*.yaml' '*.yml' '*.conf' '*Makefile' .ci ':!*/testdata/*' | {
    failed=0
    while read -r -d '' file; do
        [[ -s $file ]] || continue # empty
        want=$'# Copyright The Borough Authors.\n# SPDX-License-Identifier: Apache-2.0'
        [[ $file != *.go ]] || want=${want//#/\/\/}
        if [[ $(grep -vE '^(#!|//go:build |// \+build |$)' "$file" | head -n 2) != "$want" ]]; then
            echo "verify-headers: $file does not begin with the header of hack/boilerplate.go.txt" >&2
            failed=1
        fi
    done
    exit $failed
}
