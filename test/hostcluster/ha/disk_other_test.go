// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package ha

import (
	"context"
	"testing"
)

func fillDisk(_ context.Context, t *testing.T, _ *site, _ *load) error {
	t.Log("not tried: only Linux can limit the files of a process that runs")
	return nil
}
