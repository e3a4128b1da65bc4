// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package embeddedtest starts the embedded etcd in tests, also in those of packages that package
// storage imports, which cannot use package storagetest.
package embeddedtest

import (
	"testing"

	"github.com/borough-io/borough/pkg/storage/embedded"
)

// Start starts a member in a temporary directory. It stops with the test.
func Start(t testing.TB, change ...func(*embedded.Config)) *embedded.Server {
	t.Helper()
	config := embedded.Config{Dir: t.TempDir()}
	for _, c := range change {
		c(&config)
	}
	server, err := embedded.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}
