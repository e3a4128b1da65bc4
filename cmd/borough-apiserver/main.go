// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// borough-apiserver serves Namespaces, LimitRanges and Pods in the group
// tenancy.borough.io, behind a cluster's kube-apiserver or standalone.
package main

import (
	"fmt"
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/borough-io/borough/cmd/borough-apiserver/app"
	"github.com/borough-io/borough/cmd/internal/connections"
	"github.com/borough-io/borough/cmd/internal/memory"
)

// headroom is how many bytes the heap may grow between two garbage collections. Compared
// with a growth by 200 %, it saves a tenth of the CPU time of creates. The environment
// variable GOGC sets a percentage instead.
const headroom = 512 << 20

func main() {
	connections.SetHealthChecks()
	cmd := app.NewCommand(app.Run)
	ctx := genericapiserver.SetupSignalContext()
	if os.Getenv("GOGC") == "" {
		memory.KeepHeadroom(ctx, headroom)
	}
	go memory.ReleaseWhenIdle(ctx)
	cmd.SetContext(ctx)
	if err := cli.RunNoErrOutput(cmd); err != nil {
		fmt.Fprintf(os.Stderr, "borough-apiserver: %v\n", err)
		os.Exit(1)
	}
}
