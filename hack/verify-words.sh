#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that no file contains a word from the table "Words" in
# docs/development.md. Each code span in the first column of the table is an
# extended regular expression that matches whole words, in any case.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

words=$(awk '/^## / { table = /^## Words/ } table && /^\| `/' docs/development.md | cut -d '|' -f 2 | grep -oE '`[^`]+`' | tr -d '`')
[[ $words ]] || {
    echo "verify-words: docs/development.md has no table of words" >&2
    exit 1
}
# Generated files, the table and this script are excluded, and so are the names of
# core/v1 for the node of a Pod.
found=$(git grep -nwiE --untracked -f <(echo "$words") -- '*.go' '*.md' '*.sh' '*.yaml' '*.tpl' '*.txt' Makefile .ci \
    ':!pkg/generated' ':!*/zz_generated.*' ':!*.pb.go' ':!docs/reference/flags-*' ':!docs/development.md' ':!hack/verify-words.sh' ':!*/testdata/fuzz/*') ||
    [[ $? == 1 ]] # nothing is found
if grep -viE 'the host[ -](port|network|name|path|users?|ip|pid)|^$' <<<"$found"; then
    echo "verify-words: docs/development.md has what to write instead of these words" >&2
    exit 1
fi
