#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that pkg/corepod mirrors the release of Kubernetes that test/kubernetes/kube
# pins, as far as pkg/corepod/upstream.lock records it.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

go run ./hack/upstream
