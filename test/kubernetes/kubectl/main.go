// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl is Kubernetes' command-line tool, built from the k8s.io/kubectl module
// in the version of Borough's other Kubernetes libraries. The tests use it, and
// `make kubectl` builds it for users who have none.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	// The authentication plugins of the cloud providers.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
