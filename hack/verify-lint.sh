#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs staticcheck, as staticcheck.conf says, over all but the generated
# packages (in others it leaves generated files alone by itself).
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[[ -x .cache/tools/staticcheck ]] || hack/tools.sh
go list ./... | grep -v /pkg/generated/ | xargs .cache/tools/staticcheck
for module in test/hostcluster test/manifests; do
    (cd "$module" && "$OLDPWD/.cache/tools/staticcheck" ./...)
done
