// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package ha

import (
	"context"
	"testing"
)

func fillDisk(_ context.Context, t *testing.T, _ *site, _ *load) error {
	t.Log("skipped: only Linux can limit the file size of a running process")
	return nil
}
