// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness runs the real binaries for the end-to-end tests: a standalone
// server and, optionally, a controller, on free ports and with a separate data
// directory.
//
// It builds the binaries once per test binary, with the race detector if the
// tests use it, unless the environment variable BOROUGH_BIN names a directory
// with the binaries. It builds kubectl once, unless BOROUGH_KUBECTL is its path.
package harness
