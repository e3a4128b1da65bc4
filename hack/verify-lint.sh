#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs staticcheck, configured in staticcheck.conf, on all packages except the
# generated ones (staticcheck ignores generated files in other packages) and
# test/kubernetes/kube, whose small programs would make it analyze all of Kubernetes.
# RACE=1 uses what is compiled for tests with the race detector.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/tools.sh # also after a change of its pins
[[ ${RACE:-0} == 0 ]] || export GOFLAGS="${GOFLAGS:-} -race"
go list ./... | grep -v /pkg/generated/ | xargs .cache/tools/staticcheck
for module in examples/controller hack/images test/kubernetes test/monitoring; do
    (cd $module && ../../.cache/tools/staticcheck ./...)
done
