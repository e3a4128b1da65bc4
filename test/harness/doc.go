// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness runs the real binaries for the end-to-end tests: a standalone
// server and, optionally, a controller, on free ports and with a separate data
// directory.
//
// It uses the binaries in the directory that the environment variable BOROUGH_BIN
// names, and the kubectl whose path is BOROUGH_KUBECTL, as the scripts in hack do.
// Without these, it builds the programs once per test binary, with the race
// detector if the tests use it.
package harness
