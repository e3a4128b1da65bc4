// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

// Forget removes the history before a revision, as if it were too long.
func (v *Views) Forget(revision int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.floor = max(v.floor, revision)
}

// Held returns the number of Namespaces that are decoded, but whose change has not been
// applied.
func (v *Views) Held() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.ahead)
}

// Oldest returns the position at which the history begins.
func (v *Views) Oldest() int64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.oldest()
}
