// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	componentconfig "k8s.io/component-base/config"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/cmd/borough-controller-manager/app/options"
	"github.com/borough-io/borough/pkg/leader"
)

const (
	// leaseHealthSlack is how long after its Lease expired a leader that failed to
	// renew it becomes unhealthy.
	leaseHealthSlack = 20 * time.Second
	// maxLeaseLookupDelay is the longest delay between attempts to discover
	// Leases.
	maxLeaseLookupDelay = 30 * time.Second
)

// election ensures that only one of several replicas works.
type election struct {
	config   componentconfig.LeaderElectionConfiguration
	client   *rest.Config
	watchdog *leaderelection.HealthzAdaptor
}

func newElection(config *options.Config) *election {
	return &election{
		config:   config.LeaderElection,
		client:   config.Client,
		watchdog: leaderelection.NewLeaderHealthzAdaptor(leaseHealthSlack),
	}
}

// healthy returns an error if this process leads and failed to renew its Lease in
// time.
func (e *election) healthy() error { return e.watchdog.Check(nil) }

// run calls work when this process leads, or immediately without leader election,
// and returns after work has returned. It returns nil if the context has ended.
func (e *election) run(ctx context.Context, work func(context.Context)) error {
	if !e.config.LeaderElect {
		work(ctx)
		return nil
	}
	if err := e.awaitLeases(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	leases, err := coordinationv1client.NewForConfig(e.client)
	if err != nil {
		return fmt.Errorf("create a client for leases: %w", err)
	}
	e.checkRight(ctx, leases)
	return leader.Run(ctx, leader.Config{LeaderElectionConfiguration: e.config, Leases: leases, WatchDog: e.watchdog}, work)
}

// checkRight logs what to do if the process may not use the Lease. It does not end: in a
// cluster, it works as soon as it gets the right.
func (e *election) checkRight(ctx context.Context, leases coordinationv1client.LeasesGetter) {
	_, err := leases.Leases(e.config.ResourceNamespace).Get(ctx, e.config.ResourceName, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		klog.FromContext(ctx).Info("This process has no right to use its Lease, so it cannot become the leader and purges no Namespaces; if the server is standalone, pass --leader-elect=false", "err", err)
	}
}

// awaitLeases waits until discovery succeeds for Leases or the context ends. It
// returns an error if the server does not serve Leases.
func (e *election) awaitLeases(ctx context.Context) error {
	client, err := discovery.NewDiscoveryClientForConfig(e.client)
	if err != nil {
		return fmt.Errorf("create a discovery client: %w", err)
	}
	logger := klog.FromContext(ctx)
	backoff := wait.Backoff{Duration: e.config.RetryPeriod.Duration, Factor: 2, Jitter: 0.1, Steps: 10, Cap: maxLeaseLookupDelay}
	err = backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		_, err := client.ServerResourcesForGroupVersionWithContext(ctx, coordinationv1.SchemeGroupVersion.String())
		switch {
		case err == nil:
			return true, nil
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			return false, fmt.Errorf("the server does not serve leases, which leader election needs (%w); if the server is standalone, pass --leader-elect=false", err)
		case ctx.Err() == nil:
			logger.Info("Cannot discover leases on the server yet, will retry", "server", e.client.Host, "err", err)
		}
		return false, nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
