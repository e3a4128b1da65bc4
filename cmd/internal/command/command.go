// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command has what the commands have in common.
package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version"
)

// AddFlags adds the flags in sections, and those that all commands have.
func AddFlags(cmd *cobra.Command, sets cliflag.NamedFlagSets) {
	cmd.Version = version.Get().GitVersion
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	sets.FlagSet("global").Bool("version", false, "Print the version and quit.")
	globalflag.AddGlobalFlags(sets.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	AddSections(cmd, sets)
}

// AddSections adds the flags in sections.
func AddSections(cmd *cobra.Command, sets cliflag.NamedFlagSets) {
	for _, name := range sets.Order {
		cmd.Flags().AddFlagSet(sets.FlagSets[name])
	}
	width, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, sets, width)
}

// Run runs the command until it ends or the process gets SIGINT or SIGTERM. If the
// command fails, Run prints why in one line, and exits with 1.
func Run(cmd *cobra.Command) {
	setHealthChecks()
	signalled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Not signalled itself: the libraries treat any cause except context.Canceled
	// as a failure.
	ctx, cancel := context.WithCancel(context.Background())
	context.AfterFunc(signalled, func() {
		stop() // a second signal ends the process at once
		cancel()
	})
	cmd.SetContext(ctx)
	if err := cli.RunNoErrOutput(cmd); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", cmd.Name(), oneLine(err))
		os.Exit(1)
	}
}

// oneLine joins the lines of an error. Those of the libraries about files have several.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, " ")
}
