// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package harness

// RaceEnabled reports whether the test is built with the race detector.
const RaceEnabled = true
