// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leader does work only while the process holds a lock.
package leader

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
)

// ErrLost is returned when another process may hold the lock now.
var ErrLost = errors.New("lost the leader election lease")

// Identity returns an identity for the lock: the host name and a UUID.
func Identity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("get the identity for the leader election: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// Run waits for the lock, calls work, and returns after work has returned. It releases the
// lock only then, so that the next leader does not start before. The context of work ends
// when the lock is lost or ctx ends. Run returns nil if ctx has ended, and otherwise
// ErrLost, also if work returned by itself.
//
// Run sets ReleaseOnCancel and the callbacks of the config, except OnNewLeader.
func Run(ctx context.Context, config leaderelection.LeaderElectionConfig, work func(context.Context)) error {
	elected := make(chan context.Context, 1)
	config.ReleaseOnCancel = true
	config.Callbacks.OnStartedLeading = func(leading context.Context) { elected <- leading }
	config.Callbacks.OnStoppedLeading = func() {}
	elector, err := leaderelection.NewLeaderElector(config)
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
	case leading := <-elected:
		leading, stop := context.WithCancel(leading)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		work(leading)
	case <-ctx.Done():
	}
	release()
	<-ended
	if ctx.Err() == nil {
		return ErrLost
	}
	return nil
}
