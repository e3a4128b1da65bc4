// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package collection

// SetPageSize lets a test have several pages of few objects.
func (d *Deleter) SetPageSize(n int64) { d.pageSize = n }
