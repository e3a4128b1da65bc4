// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// borough-apiserver serves Namespaces, LimitRanges, ResourceQuotas, NamespaceTemplates and
// Pods in the group tenancy.borough.io, behind a cluster's kube-apiserver or standalone.
package main

import (
	"fmt"
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/borough-io/borough/cmd/borough-apiserver/app"
	"github.com/borough-io/borough/cmd/internal/connections"
)

func main() {
	connections.SetHealthChecks()
	cmd := app.NewCommand(app.Run)
	cmd.SetContext(genericapiserver.SetupSignalContext())
	if err := cli.RunNoErrOutput(cmd); err != nil {
		fmt.Fprintf(os.Stderr, "borough-apiserver: %v\n", err)
		os.Exit(1)
	}
}
