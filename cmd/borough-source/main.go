// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// borough-source keeps the Pods of a Namespace equal to those in files or at a URL.
package main

import (
	"github.com/borough-io/borough/cmd/borough-source/app"
	"github.com/borough-io/borough/cmd/internal/command"
)

func main() { command.Run(app.NewCommand(app.Run)) }
