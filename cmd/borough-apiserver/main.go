// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// borough-apiserver serves Namespaces, LimitRanges and Pods in the group
// tenancy.borough.io, behind a cluster's kube-apiserver or standalone.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/borough-io/borough/cmd/borough-apiserver/app"
	"github.com/borough-io/borough/cmd/internal/connections"
	"github.com/borough-io/borough/cmd/internal/memory"
)

// gcPercent is the growth of the heap, in percent of the live heap, that starts a
// garbage collection. With Go's default of 100, garbage collection took a seventh
// of the CPU time of creates. The environment variable GOGC overrides it.
const gcPercent = 200

func main() {
	connections.SetHealthChecks()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	cmd := app.NewCommand(app.Run)
	ctx := genericapiserver.SetupSignalContext()
	go memory.ReleaseWhenIdle(ctx)
	cmd.SetContext(ctx)
	if err := cli.RunNoErrOutput(cmd); err != nil {
		fmt.Fprintf(os.Stderr, "borough-apiserver: %v\n", err)
		os.Exit(1)
	}
}
