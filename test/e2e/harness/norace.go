// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package harness

const raceEnabled = false
