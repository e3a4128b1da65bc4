// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

// Forget removes the history before a revision, as if it were too long.
func (v *Views) Forget(revision int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.floor = max(v.floor, revision)
}
