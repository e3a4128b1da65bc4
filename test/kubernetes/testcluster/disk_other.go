// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package testcluster

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// FillDisk returns an error that wraps errors.ErrUnsupported: only Linux can limit the
// size of the files of a running process.
func (m *EtcdMember) FillDisk(context.Context) error {
	return fmt.Errorf("limit the size of the files of %s on %s: %w", m.name, runtime.GOOS, errors.ErrUnsupported)
}
