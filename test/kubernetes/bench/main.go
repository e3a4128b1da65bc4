// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// The program bench compares Borough with Kubernetes: a standalone Borough on
// one side; kube-apiserver, kube-controller-manager and etcd on the other. Both
// run on this machine, with fsync, under the same load. It prints a table and,
// after a full run, writes it to docs/benchmarks.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/borough-io/borough/test/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	short := flags.Bool("short", false, "smaller loads and one round, for a look: about two minutes")
	pattern := flags.String("run", "", "run only the cases whose names match this regular expression")
	list := flags.Bool("list", false, "list the cases and end")
	rounds := flags.Int("rounds", 3, "rounds; of each figure the median counts")
	out := flags.String("out", "", "write the table between the markers of this document (default docs/benchmarks.md after a full run, else none)")
	profilesDir := flags.String("profiles", "", "write CPU profiles of the servers of Borough into this directory")
	_ = flags.Parse(args) // exits on an error
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds: %d must be at least 1", *rounds)
	}
	wanted, err := regexp.Compile(*pattern)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if *list {
		for _, c := range cases {
			fmt.Printf("%-12s %s\n", c.name, c.about)
		}
		return nil
	}
	size := full
	if *short {
		size, *rounds = small, 1
	}
	if *out == "" && *pattern == "" && !*short {
		*out = filepath.Join(harness.Root, "docs", "benchmarks.md")
	}

	started := time.Now()
	busy, err := machineBusy()
	if err != nil {
		return err
	}
	b := &bench{size: size, rounds: *rounds, wanted: wanted, report: &report{aims: aims}, limitRanger: &report{aims: limitRangerAims}, profiles: profiles(*profilesDir)}
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := b.run(ctx); err != nil {
		return err
	}
	text, err := b.describe(ctx, time.Since(started), busy)
	if err != nil {
		return err
	}
	text += b.report.String()
	if len(b.limitRanger.rows) > 0 {
		text += "\nLimitRanger by itself, for each Pod:\n\n" + b.limitRanger.String()
	}
	fmt.Print(text)
	if *out == "" {
		return nil
	}
	return writeBetweenMarkers(*out, text)
}
