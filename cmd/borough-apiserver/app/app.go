// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app implements the command borough-apiserver.
package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/version" // metric of the build
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/cmd/borough-apiserver/app/options"
	"github.com/borough-io/borough/cmd/internal/command"
	"github.com/borough-io/borough/cmd/internal/memory"
	"github.com/borough-io/borough/pkg/certificates/reconcile"
	"github.com/borough-io/borough/pkg/storage"
)

func init() { storage.SetGRPCLogger() }

// NewCommand returns the command. The command passes the completed and validated
// options to run; tests of the flags pass a run that starts nothing.
func NewCommand(run func(context.Context, *options.Options) error) *cobra.Command {
	o := options.New()
	cmd := &cobra.Command{
		Use:   "borough-apiserver",
		Short: "Serve Namespaces, LimitRanges, ResourceQuotas, NamespaceTemplates and Pods in the group tenancy.borough.io",
		Long: `borough-apiserver serves Namespaces, LimitRanges, ResourceQuotas,
NamespaceTemplates and Pods in the API group tenancy.borough.io.

With --standalone it needs no cluster: it runs an embedded etcd, creates its
certificates, and writes kubeconfigs into --data-dir; "borough-apiserver
kubeconfig" writes one for another user. With --kubeconfig, or
inside a cluster, it serves an APIService behind the cluster's kube-apiserver and
delegates authentication and authorization to it. "borough-apiserver doctor"
finds faults in such a deployment.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Complete(cmd.Flags()); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}

	command.AddFlags(cmd, o.Flags())
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(newDoctorCommand(), newKubeconfigCommand())
	return cmd
}

// headroom is how many bytes the heap may grow between two garbage collections. A smaller
// one takes CPU time for the collections, a larger one for memory that the operating system
// has to provide. The environment variable GOGC sets a percentage instead.
const headroom = 128 << 20

var registerMetrics = sync.OnceFunc(func() { reconcile.RegisterMetrics(legacyregistry.MustRegister) })

// Run serves until the context ends. It returns an error if the embedded etcd stops, or a
// kubeconfig changes, before that.
func Run(ctx context.Context, o *options.Options) (err error) {
	// Not in Complete, because a process can apply this only once.
	if err := logsapi.ValidateAndApply(o.Logs, nil); err != nil {
		return fmt.Errorf("set up logging: %w", err)
	}

	registerMetrics()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started := func() {}
	if os.Getenv("GOGC") == "" {
		started = memory.KeepHeadroom(ctx, headroom).Started
	}

	deps, err := o.Open(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // stopped while it starts
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, deps.Close()) }()
	go func() {
		select {
		case <-deps.EtcdStopped():
			cancel(errEtcdStopped)
		case <-ctx.Done():
		}
	}()
	changed := make(chan error, 1)
	go func() {
		err := deps.AwaitChange(ctx)
		if err != nil {
			klog.FromContext(ctx).Info("Shutting down", "reason", err)
		}
		changed <- err
		cancel(nil) // as on SIGTERM
	}()

	config, err := o.Config(deps)
	if err != nil {
		return err
	}
	config.Extra.AfterStart = func(ctx context.Context) {
		started()
		memory.StartLargeStacks(ctx)
		// Earlier, it would mark what the start is about to load, and return memory that it needs.
		memory.ReleaseWhenIdle(ctx)
	}
	server, err := config.Complete().New()
	if err != nil {
		return err
	}
	if err := server.PrepareRun().RunWithContext(ctx); err != nil {
		return err
	}
	if errors.Is(context.Cause(ctx), errEtcdStopped) {
		return errEtcdStopped
	}
	return <-changed // the context has ended
}

var errEtcdStopped = errors.New("the embedded etcd stopped unexpectedly; see its log for the cause")
