// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leader does work only while the process holds a lock, which is a Lease.
//
// At most one process works at a time. The elector of the library does not ensure that:
// when it cannot renew the Lease, it tries to release it before it ends the work. So the
// lock ends the work itself, RenewDeadline after it sent the last request that renewed the
// Lease, and releases the Lease only when the work has returned. Other processes take over
// no earlier than LeaseDuration after that request. The work must return within the
// difference.
package leader

import (
	"context"
	"errors"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentconfig "k8s.io/component-base/config"
)

// ErrLost is returned when another process may hold the lock now.
var ErrLost = errors.New("lost the leader election lease")

// Config is how a process gets the lock.
type Config struct {
	// LeaderElectionConfiguration has the times, and the namespace and name of the Lease.
	componentconfig.LeaderElectionConfiguration
	// Leases is the client for the Lease.
	Leases coordinationv1client.LeasesGetter
	// WatchDog reports whether the Lease is renewed in time. It can be nil.
	WatchDog *leaderelection.HealthzAdaptor
	// Waiting is called when another process holds the Lease. It can be nil.
	Waiting func(holder string)
}

// Run waits for the lock, calls work, and returns after work has returned. It releases the
// lock only then, so that the next leader does not start before. The context of work ends
// when the lock is lost, with the cause ErrLost, or ctx ends. Run returns nil if ctx has
// ended, and otherwise ErrLost, also if work returned by itself.
func Run(ctx context.Context, config Config, work func(context.Context)) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("get the identity for the leader election: %w", err)
	}
	identity := host + "_" + string(uuid.NewUUID())
	leading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	elected, returned := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: config.ResourceName,
		Lock: &lock{
			Interface: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: config.ResourceNamespace, Name: config.ResourceName},
				Client:     config.Leases,
				LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
			},
			renewDeadline: config.RenewDeadline.Duration,
			stop:          func() { stop(ErrLost) },
			returned:      returned,
		},
		LeaseDuration:   config.LeaseDuration.Duration,
		RenewDeadline:   config.RenewDeadline.Duration,
		RetryPeriod:     config.RetryPeriod.Duration,
		WatchDog:        config.WatchDog,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(elected) },
			OnStoppedLeading: func() {},
			OnNewLeader: func(holder string) {
				if holder != identity && config.Waiting != nil {
					config.Waiting(holder)
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("set up the leader election: %w", err)
	}
	if config.WatchDog != nil {
		config.WatchDog.SetLeaderElection(elector)
	}
	leaseCtx, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(leaseCtx)
	}()
	select {
	case <-elected:
		work(leading)
	case <-ctx.Done():
	}
	close(returned)
	release()
	<-ended
	if ctx.Err() == nil {
		return ErrLost
	}
	return nil
}
