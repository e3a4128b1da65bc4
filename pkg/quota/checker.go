// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import "context"

// Checker compares changes with the quotas.
type Checker interface {
	// CheckQuotas returns why the quotas of a Namespace do not allow a change, or nil. It
	// charges nothing.
	CheckQuotas(ctx context.Context, namespace string, change *Change) (*Denial, error)
}
