// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the real binaries over HTTPS, with kubectl, typed clients,
// informers and plain HTTP requests.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/borough-io/borough/test/harness"
)

var (
	// borough is a server with a controller. The tests share it and use separate
	// Namespaces.
	borough *harness.Borough
	// alone is a server without a controller, so the test itself must terminate
	// a Namespace. The tests share it too.
	alone *harness.Borough
)

func TestMain(m *testing.M) { harness.Main(m, run) }

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "borough-e2e-data-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)

	borough = &harness.Borough{Dir: dir + "/borough"}
	alone = &harness.Borough{Dir: dir + "/alone"}
	defer func() {
		err = errors.Join(err, borough.Stop(), alone.Stop())
		if code != 0 || err != nil {
			fmt.Fprintf(os.Stderr, "with the controller:\n%s\nwithout:\n%s\n", borough.Logs(), alone.Logs())
		}
	}()
	// Build everything before a timeout for a process starts.
	if _, err := harness.KubectlPath(); err != nil {
		return 0, fmt.Errorf("find or build kubectl: %w", err)
	}
	ctx := context.Background()
	var starting sync.WaitGroup
	var errBorough, errAlone error
	starting.Go(func() { errBorough = borough.Start(ctx) })
	starting.Go(func() { errAlone = alone.StartServer(ctx, "--enable-garbage-collector=true") })
	starting.Wait()
	if err := errors.Join(errBorough, errAlone); err != nil {
		return 0, err
	}
	return m.Run(), nil
}
