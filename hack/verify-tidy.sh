#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the go.mod of every module is tidy, that all of them require the same
# version of the k8s.io libraries, that none requires k8s.io/kubernetes, and that
# examples/controller and test/kubernetes have the versions of the root module, so that
# each package is compiled once for all. Only the first applies to test/kubernetes/kube, which
# may build another release.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
mods=$(hack/list-files.sh '*go.mod' | tr '\0' '\n')
for mod in $mods; do
    if ! go -C "$(dirname "$mod")" mod tidy -diff; then
        echo "verify-tidy: $mod is not tidy: run make update-tidy" >&2
        failed=1
    fi
done
mods=$(grep -v '^test/kubernetes/kube/' <<<"$mods")
# The staging libraries are released together, as v0.N.P.
versions=$(grep -hoE 'k8s.io/(api|apimachinery|apiserver|cli-runtime|client-go|code-generator|component-base|component-helpers|kms|kubectl|metrics|streaming) v[0-9.]+' $mods | awk '{ print $2 }' | sort -u)
if [[ $(wc -l <<<"$versions") != 1 ]]; then
    echo "verify-tidy: the k8s.io libraries are at several versions:" $versions >&2
    failed=1
fi
if grep -nE 'k8s.io/kubernetes ' $mods; then
    echo "verify-tidy: k8s.io/kubernetes must not be required" >&2
    failed=1
fi
requirements() { sed -n '/^exclude/,/^)/d; s/^\t\([^ ]*\) \(v[^ ]*\).*/\1 \2/p' "$1" | sort; }
for module in examples/controller test/kubernetes; do
    if join <(requirements go.mod) <(requirements $module/go.mod) | awk '$2 != $3' | grep .; then
        echo "verify-tidy: $module requires another version of these modules than go.mod" >&2
        failed=1
    fi
done
exit $failed
