#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the go.mod of every module is tidy, that every k8s.io library is
# at one version in all of them, and that k8s.io/kubernetes is in none. The last
# two do not hold for test/hostcluster, which builds a cluster of another release.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
mods=$(git ls-files --cached --others --exclude-standard --deduplicate '*go.mod')
for mod in $mods; do
    if ! go -C "$(dirname "$mod")" mod tidy -diff; then
        echo "verify-tidy: $mod is not tidy: run make update-tidy" >&2
        failed=1
    fi
done
product=$(grep -v '^test/hostcluster/' <<<"$mods")
mods=$(grep -v '^test/hostcluster/kube/' <<<"$mods")
# The staging libraries are released together, as v0.N.P.
versions=$(grep -hoE 'k8s.io/(api|apimachinery|apiserver|cli-runtime|client-go|code-generator|component-base|component-helpers|kms|kubectl|metrics|streaming) v[0-9.]+' $product | awk '{ print $2 }' | sort -u)
if [[ $(wc -l <<<"$versions") != 1 ]]; then
    echo "verify-tidy: the k8s.io libraries are at several versions:" $versions >&2
    failed=1
fi
if grep -nE 'k8s.io/kubernetes ' $product; then
    echo "verify-tidy: k8s.io/kubernetes is not for import" >&2
    failed=1
fi
exit $failed
