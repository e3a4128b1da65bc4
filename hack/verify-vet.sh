#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs go vet in every module.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go vet ./...
go -C test/kubernetes vet ./...
# With the flags of hack/kubernetes.sh, to use its build cache.
CGO_ENABLED=0 go -C test/kubernetes/kube vet -trimpath ./...
