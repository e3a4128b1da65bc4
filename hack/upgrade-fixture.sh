#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes a fixture for test/upgrade with the binaries of a commit:
# `hack/upgrade-fixture.sh v0.1.0` writes test/upgrade/testdata/v0.1.0.
set -o errexit -o nounset -o pipefail
commit=${1:?a commit, such as v0.1.0}
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
git clone --quiet . "$tmp/borough"
git -C "$tmp/borough" -c advice.detachedHead=false checkout --quiet "$commit"
"$tmp/borough/hack/build.sh" -o "$tmp/bin/"
BOROUGH_BIN=$tmp/bin go test -vet=off -count=1 ./test/upgrade -run '^TestFixture$' -fixture "testdata/$commit"
du -sh "test/upgrade/testdata/$commit"
