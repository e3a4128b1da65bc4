// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// borough-controller-manager purges the Namespaces of a borough-apiserver that
// are being deleted.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/component-base/cli"

	"github.com/borough-io/borough/cmd/borough-controller-manager/app"
	"github.com/borough-io/borough/cmd/internal/connections"
)

func main() {
	connections.SetHealthChecks()
	signalled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Not signalled itself: the libraries treat any cause except context.Canceled
	// as a failure.
	ctx, cancel := context.WithCancel(context.Background())
	context.AfterFunc(signalled, func() {
		stop() // a second signal ends the process at once
		cancel()
	})

	cmd := app.NewCommand(app.Run)
	cmd.SetContext(ctx)
	if err := cli.RunNoErrOutput(cmd); err != nil {
		fmt.Fprintf(os.Stderr, "borough-controller-manager: %v\n", err)
		os.Exit(1)
	}
}
