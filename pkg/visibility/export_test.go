// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

// Forget removes the history before a revision, as if it were too long.
func (v *Views) Forget(revision int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.floor = max(v.floor, revision)
}

// Oldest returns the position at which the history begins.
func (v *Views) Oldest() int64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.oldest()
}
