// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// borough-apiserver serves Namespaces, LimitRanges, ResourceQuotas, NamespaceTemplates and
// Pods in the group tenancy.borough.io, behind a cluster's kube-apiserver or standalone.
package main

import (
	"github.com/borough-io/borough/cmd/borough-apiserver/app"
	"github.com/borough-io/borough/cmd/internal/command"
)

func main() { command.Run(app.NewCommand(app.Run)) }
