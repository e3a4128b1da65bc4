#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks the workflows with actionlint, and that each names actions by commit, with the
# version in a comment, restricts its permissions, limits the time of each job, and has a
# shell in which a pipeline fails with any of its commands.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/tools.sh # also after a change of its pins
failed=0
# Without shellcheck and pyflakes, which are not on every machine.
.cache/tools/actionlint -shellcheck= -pyflakes= || failed=1
fail() {
    echo "verify-workflows: $1" >&2
    failed=1
}
for workflow in .github/workflows/*; do
    while read -r line; do
        [[ $line =~ uses:\ [^@]+@[0-9a-f]{40}\ \#\ v[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "$workflow: write the commit of the action, and its version in a comment: $line"
    done < <(grep 'uses:' "$workflow")
    grep -q '^permissions:$' "$workflow" || fail "$workflow: it has no permissions"
    grep -q '^    shell: bash ' "$workflow" || fail "$workflow: its shell has no pipefail: write shell: bash in defaults.run"
    grep -q '^concurrency:$' "$workflow" || fail "$workflow: it has no concurrency"
    [[ $(grep -c '^    runs-on: ' "$workflow") == $(grep -c '^    timeout-minutes: ' "$workflow") ]] || fail "$workflow: a job has no timeout-minutes"
done
exit $failed
