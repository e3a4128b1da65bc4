// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// borough-apiserver serves Namespaces, LimitRanges and Pods in the group
// tenancy.borough.io, behind the API server of a cluster or on its own.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/borough-io/borough/cmd/borough-apiserver/app"
)

// gcPercent is how far the heap may grow between two collections, in per cent of
// what lives in it. Go's default is 100; with it collecting was a seventh of the
// CPU time that creates cost. The environment variable GOGC has the last word.
const gcPercent = 200

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	cmd := app.NewCommand(app.Run)
	cmd.SetContext(genericapiserver.SetupSignalContext())
	if err := cli.RunNoErrOutput(cmd); err != nil {
		fmt.Fprintf(os.Stderr, "borough-apiserver: %v\n", err)
		os.Exit(1)
	}
}
