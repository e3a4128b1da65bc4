#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the linker flags that put the version into a binary, where
# k8s.io/component-base/version reads it: --version shows it, and so does GET /version,
# in a standalone server behind the version of Kubernetes.
# All of it derives from the commit, so builds of one commit are identical.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=v0.0.0 commit=unknown state=archive date=1970-01-01T00:00:00Z
# In an archive that was unpacked in another repository, HEAD is that of the other.
if [[ -z $(git rev-parse --show-prefix 2>/dev/null) ]] && commit=$(git rev-parse --verify HEAD 2>/dev/null); then
    state=clean
    [[ -z $(git status --porcelain 2>/dev/null) ]] || state=dirty
    date=$(TZ=UTC0 git log -1 --no-show-signature --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)
    # v0.1.0 on the tag itself, else v0.1.0-12+1a2b3c4, a version that sorts
    # and parses; -dirty belongs to the build metadata.
    tag=$(git describe --tags --match 'v[0-9]*' --abbrev=0 2>/dev/null) || tag=
    ahead=$(git rev-list --count "${tag:+$tag..}HEAD")
    version=${tag:-v0.0.0}
    [[ $ahead == 0 ]] || version+=-$ahead+${commit:0:7}
    [[ $state == clean ]] || version+=$([[ $version == *+* ]] && echo . || echo +)dirty
else
    commit=unknown
    [[ ! -e .git ]] || git rev-parse --git-dir >/dev/null # fails with the reason, such as another owner
fi

IFS=. read -r major minor _ <<<"${version#v}"
package=k8s.io/component-base/version
echo "-X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor" \
    "-X $package.gitCommit=$commit -X $package.gitTreeState=$state -X $package.buildDate=$date"
