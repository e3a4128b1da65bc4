// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// borough-controller-manager purges the Namespaces of a borough-apiserver that
// are being deleted.
package main

import (
	"github.com/borough-io/borough/cmd/borough-controller-manager/app"
	"github.com/borough-io/borough/cmd/internal/command"
)

func main() { command.Run(app.NewCommand(app.Run)) }
