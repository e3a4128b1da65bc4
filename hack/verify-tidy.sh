#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the go.mod of every module is tidy, that all of them require the same
# version of the k8s.io libraries, and that none requires k8s.io/kubernetes. The
# last two do not apply to test/kubernetes/kube, which builds the control plane of
# another release.
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
product=$(grep -v '^test/kubernetes/' <<<"$mods")
mods=$(grep -v '^test/kubernetes/kube/' <<<"$mods")
# The staging libraries are released together, as v0.N.P.
versions=$(grep -hoE 'k8s.io/(api|apimachinery|apiserver|cli-runtime|client-go|code-generator|component-base|component-helpers|kms|kubectl|metrics|streaming) v[0-9.]+' $product | awk '{ print $2 }' | sort -u)
if [[ $(wc -l <<<"$versions") != 1 ]]; then
    echo "verify-tidy: the k8s.io libraries are at several versions:" $versions >&2
    failed=1
fi
if grep -nE 'k8s.io/kubernetes ' $product; then
    echo "verify-tidy: k8s.io/kubernetes must not be required" >&2
    failed=1
fi
exit $failed
