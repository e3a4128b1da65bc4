// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app implements the command borough-controller-manager.
package app

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection" // metrics of the leader election
	_ "k8s.io/component-base/metrics/prometheus/restclient"              // metrics of the requests to the server
	_ "k8s.io/component-base/metrics/prometheus/version"                 // metric of the build
	_ "k8s.io/component-base/metrics/prometheus/workqueue"               // metrics of the queues
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/cmd/borough-controller-manager/app/options"
	"github.com/borough-io/borough/cmd/internal/command"
	"github.com/borough-io/borough/cmd/internal/serving"
	"github.com/borough-io/borough/pkg/certificates/etcdca"
	"github.com/borough-io/borough/pkg/certificates/reconcile"
	"github.com/borough-io/borough/pkg/controller/namespace"
)

// NewCommand returns the command. The command passes the config that it makes from
// the flags to run; tests of the flags pass a run that starts nothing.
func NewCommand(run func(context.Context, *options.Config) error) *cobra.Command {
	o := options.New()
	cmd := &cobra.Command{
		Use:   "borough-controller-manager",
		Short: "Purge the Namespaces of a borough-apiserver that are being deleted",
		Long: `borough-controller-manager watches the Namespaces of the API group
tenancy.borough.io. When a Namespace is deleted, it deletes the content and then
finalizes the Namespace. If etcd runs in the cluster, it can also issue and renew
etcd's certificates.

If several replicas run, they elect one leader, which does the work, by a Lease in
the cluster of the kubeconfig. On a standalone borough-apiserver, the controller has
no right to write Leases: run it there with --leader-elect=false.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Complete(); err != nil {
				return err
			}
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

// Run runs the controller until the context ends. It returns an error if the
// controller cannot start, cannot serve, or has lost its Lease, or its kubeconfig has changed.
func Run(ctx context.Context, config *options.Config) error {
	klog.FromContext(ctx).Info("Starting", "version", version.Get().GitVersion, "server", config.Client.Host)
	listener := config.HTTPListener
	if listener == nil {
		var err error
		if listener, err = serving.Listen(config.HTTPBindAddress); err != nil {
			return err
		}
	}
	registry := metrics.NewKubeRegistry()
	reconcile.RegisterMetrics(registry.MustRegister)
	controller, err := namespace.New(config.Client, config.PurgeAPIGroups, registry)
	var issuer *etcdca.Issuer
	if err == nil && config.EtcdCA != nil {
		issuer, err = newIssuer(config)
	}
	if err != nil {
		if listener != nil {
			_ = listener.Close() // nothing was served
		}
		return err
	}
	election := newElection(config)

	group, ctx := errgroup.WithContext(ctx)
	if listener != nil {
		group.Go(func() error {
			return serving.Serve(ctx, listener, serving.NewHandler(registry, election.healthy, func() error {
				if !controller.HasSynced() {
					return errors.New("the namespace informer has not synced yet")
				}
				return nil
			}))
		})
	}
	if config.AwaitClientChange != nil {
		group.Go(func() error { return config.AwaitClientChange(ctx) })
	}
	// Informers also run while another replica leads, so that this one can take
	// over without delay.
	group.Go(func() error {
		controller.RunInformer(ctx)
		return nil
	})
	group.Go(func() error {
		return election.run(ctx, func(ctx context.Context) {
			var work sync.WaitGroup
			work.Go(func() { controller.RunWorkers(ctx, config.Workers) })
			if issuer != nil {
				work.Go(func() { issuer.Run(ctx) })
			}
			work.Wait()
		})
	})
	return group.Wait()
}

// newIssuer returns the issuer of etcd's certificates.
func newIssuer(config *options.Config) (*etcdca.Issuer, error) {
	client, err := kubernetes.NewForConfig(config.Client)
	if err != nil {
		return nil, fmt.Errorf("create a client for the certificates of etcd: %w", err)
	}
	return etcdca.New(*config.EtcdCA, client)
}
