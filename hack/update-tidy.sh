#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Tidies the go.mod of every module.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/list-files.sh '*go.mod' | while read -r -d '' mod; do
    go -C "$(dirname "$mod")" mod tidy
done
