// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness runs the real binaries for the end-to-end tests: a standalone
// server and, when asked for, a controller, on free ports with a data directory
// of their own.
//
// It builds the binaries once per test binary, with the race detector if the
// tests have it, unless BOROUGH_BIN names a directory that holds them; likewise
// kubectl, unless BOROUGH_KUBECTL names one.
package harness
