// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app implements the command borough-source.
package app

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // metrics of the requests to the server
	_ "k8s.io/component-base/metrics/prometheus/version"    // metric of the build
	_ "k8s.io/component-base/metrics/prometheus/workqueue"  // metrics of the queues
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/cmd/borough-source/app/options"
	"github.com/borough-io/borough/cmd/internal/command"
	"github.com/borough-io/borough/cmd/internal/serving"
	"github.com/borough-io/borough/pkg/controller/podsource"
)

// NewCommand returns the command. The command passes the config that it makes from
// the flags to run; tests of the flags pass a run that starts nothing.
func NewCommand(run func(context.Context, *options.Config) error) *cobra.Command {
	o := options.New()
	cmd := &cobra.Command{
		Use:   "borough-source --from=FILE|DIR|URL --node=NAME",
		Short: "Keep the Pods of a Namespace equal to those in files or at a URL",
		Long: `borough-source reads Pods from files, directories and URLs, as a kubelet reads
static Pods, and keeps the Pods of a Namespace equal to them. It creates the
Namespace of a source, whose name depends on the node and the source alone. A Pod
has the name NAME-NODE, and is assigned to the node.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			if err := logsapi.ValidateAndApply(o.Logs, nil); err != nil {
				return fmt.Errorf("set up logging: %w", err)
			}
			config, err := o.Config()
			if err != nil {
				return err
			}
			return run(cmd.Context(), config)
		},
	}
	command.AddFlags(cmd, o.Flags())
	return cmd
}

// Run runs a controller for each source, until the context ends or, if the config says so,
// until the Pods are those of the sources. It returns an error if the kubeconfig has changed.
func Run(ctx context.Context, config *options.Config) error {
	registry := metrics.NewKubeRegistry()
	sourceMetrics := podsource.NewMetrics(registry)
	var controllers []*podsource.Controller
	for _, source := range config.Sources {
		controller, err := podsource.New(config.Client, source, sourceMetrics)
		if err != nil {
			return err
		}
		controllers = append(controllers, controller)
	}
	switch {
	case config.DryRun:
		return forEach(controllers, func(c *podsource.Controller) error { return c.Diff(ctx, os.Stdout) })
	case config.Once:
		ctx, cancel := context.WithTimeoutCause(ctx, config.OnceTimeout, fmt.Errorf("timed out after --once-timeout=%s", config.OnceTimeout))
		defer cancel()
		// Concurrently, because each may wait for as long as the timeout.
		var converge []func() error
		for _, c := range controllers {
			converge = append(converge, func() error { return c.Converge(ctx) })
		}
		return utilerrors.AggregateGoroutines(converge...)
	}

	klog.FromContext(ctx).Info("Starting", "version", version.Get().GitVersion, "server", config.Client.Host)
	listener, err := serving.Listen(config.HTTPBindAddress)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if listener != nil {
		healthy := func() error { return nil }
		ready := func() error { return forEach(controllers, (*podsource.Controller).Ready) }
		group.Go(func() error {
			return serving.Serve(ctx, listener, serving.NewHandler(registry, healthy, ready))
		})
	}
	if config.AwaitClientChange != nil {
		group.Go(func() error { return config.AwaitClientChange(ctx) })
	}
	for _, controller := range controllers {
		group.Go(func() error { return controller.Run(ctx) })
	}
	return group.Wait()
}

// forEach calls f for all controllers, and returns all errors.
func forEach(controllers []*podsource.Controller, f func(*podsource.Controller) error) error {
	var errs []error
	for _, c := range controllers {
		errs = append(errs, f(c))
	}
	return utilerrors.NewAggregate(errs)
}
