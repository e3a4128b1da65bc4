#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs staticcheck, configured in staticcheck.conf, on all packages except the
# generated ones (staticcheck ignores generated files in other packages).
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/tools.sh # also after a change of its pins
go list ./... | grep -v /pkg/generated/ | xargs .cache/tools/staticcheck
for module in examples/controller test/kubernetes test/monitoring; do
    (cd $module && ../../.cache/tools/staticcheck ./...)
done
