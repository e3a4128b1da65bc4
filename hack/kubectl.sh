#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds kubectl (test/kubernetes/kubectl) into bin/kubectl or the given file.
set -o errexit -o nounset -o pipefail
out=${1:-}
[[ ! $out || $out == /* ]] || out=$PWD/$out
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${out:-$PWD/bin/kubectl}

mkdir -p "$(dirname "$out")"
cd test/kubernetes
# The libraries have the major version 0, kubectl has 1: v0.37.2 is v1.37.2.
version=$(go list -m -f '{{.Version}}' k8s.io/kubectl)
go build -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v1${version#v0}" -o "$out" ./kubectl
