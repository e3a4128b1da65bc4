// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// borough-apiserver serves Namespaces, LimitRanges and Pods in the group
// tenancy.borough.io, behind the API server of a cluster or on its own.
package main

import (
	"fmt"
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/borough-io/borough/cmd/borough-apiserver/app"
)

func main() {
	cmd := app.NewCommand(app.Run)
	cmd.SetContext(genericapiserver.SetupSignalContext())
	if err := cli.RunNoErrOutput(cmd); err != nil {
		fmt.Fprintf(os.Stderr, "borough-apiserver: %v\n", err)
		os.Exit(1)
	}
}
