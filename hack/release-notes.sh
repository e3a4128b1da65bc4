#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the section of a version in CHANGELOG.md: `hack/release-notes.sh v0.1.0`.
# A pre-release, v0.1.0-rc.1, has the section of its release. Links to files of the
# repository lead to the tag. Fails if there is no such section.
set -o errexit -o nounset -o pipefail
version=${1:?a version, such as v0.1.0}
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

section=${version#v}
section=${section%%-*}
notes=$(awk -v section="$section" '
    /^## / { found = index($0, "## [" section "] - ") == 1; next }
    /^\[[^]]*\]: / { found = 0 }
    found
' CHANGELOG.md | sed -E "s#\]\(([^):]+)\)#](https://github.com/borough-io/borough/blob/$version/\1)#g")
[[ $notes == *[![:space:]]* ]] || {
    echo "release-notes: CHANGELOG.md has no section ## [$section] - DATE" >&2
    exit 1
}
sed '/./,$!d' <<<"$notes"
