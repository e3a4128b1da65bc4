#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that artifacts/deploy and the chart in artifacts/charts render, produce
# the same objects, and are correct as far as can be checked without a cluster. It
# builds kustomize and helm into .cache/tools.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# -count=1: the test cache does not know the files that kustomize and helm read.
go -C test/manifests test -count=1 ./...
.cache/tools/helm lint --quiet --strict artifacts/charts/borough
