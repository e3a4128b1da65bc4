#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that artifacts/deploy and the chart in artifacts/charts render, produce
# the same objects, and are correct as far as can be checked without a cluster. It
# needs bin/kubectl and builds helm into .cache/tools.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

export BOROUGH_KUBECTL=${BOROUGH_KUBECTL:-$PWD/bin/kubectl}
# -count=1: the test cache does not know the files that kubectl and helm read.
go -C test/kubernetes test -vet=off -count=1 ./manifests
.cache/tools/helm lint --quiet --strict artifacts/charts/borough
