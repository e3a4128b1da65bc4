// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compaction removes the history of etcd: what is older than an interval and, while more
// than half of etcd's space quota is in use, what is older than the latest writes.
package compaction

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/storage/internal/unanswered"
)

const (
	// quotaPart is the part of the space quota (1/32) that a server writes between two checks
	// of how much is in use. If more than half is in use, it keeps the history since the check
	// before: the servers of a cluster, each of which counts what it writes, need together a
	// fraction of the other half.
	quotaPart = 32
	// unknownStep is how many bytes a server writes until the next check, if it does not know
	// the space quota.
	unknownStep = 16 << 20
	// revisionKey is the key with which the servers of a cluster agree on who compacts at the end
	// of an interval. It is that of the API server library.
	revisionKey = "compact_rev_key"
)

// Config configures a Compactor.
type Config struct {
	// Client is a client of the etcd cluster.
	Client *clientv3.Client
	// Status returns the status of one of its members.
	Status func(context.Context) (*clientv3.StatusResponse, error)
	// Meter counts what this server writes to the cluster.
	Meter *Meter
	// Interval is the time between two compactions. Each removes the history until the one
	// before. If several servers compact a cluster, one of them does so in each interval.
	Interval time.Duration
}

// Compactor compacts an etcd cluster.
type Compactor struct {
	Config
	version int64 // of revisionKey
	due     int64 // the revision to compact at the end of the interval
	step    int64 // how many bytes to write between two checks
	checked int64 // the revision of the last check
	early   bool  // whether the last check has found more than half of the quota in use
	denied  bool  // whether the last check was not allowed

	compacted atomic.Int64
}

var _ etcd3.Compactor = &Compactor{}

// New returns a compactor. It does nothing until Run is called.
func New(config Config) *Compactor { return &Compactor{Config: config, step: unknownStep} }

// CompactRevision returns the latest revision up to which the history is known to be compacted, or 0.
func (c *Compactor) CompactRevision() int64 { return c.compacted.Load() }

// Run compacts until the context ends. It logs errors, after which the next compaction may
// succeed.
func (c *Compactor) Run(ctx context.Context) {
	ticker := time.NewTicker(c.Interval)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			err = c.compactDue(ctx)
		case <-c.Meter.check:
			err = c.checkSpace(ctx)
		}
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to compact etcd, will retry")
		}
	}
}

// compactDue compacts the history until the end of the interval before, unless another server
// has done so since.
func (c *Compactor) compactDue(ctx context.Context) error {
	due := c.due
	_, _, err := unanswered.Retry(ctx, revisionKey, func(bool) (struct{}, error) {
		version, current, compacted, err := etcd3.Compact(ctx, c.Client, c.version, due)
		c.version, c.due = version, current
		c.noteCompacted(compacted)
		return struct{}{}, err
	})
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) { // early, by any server
		return fmt.Errorf("compact revision %d: %w", due, err)
	}
	return nil
}

func (c *Compactor) noteCompacted(revision int64) {
	c.compacted.Store(max(c.compacted.Load(), revision))
}

// checkSpace compacts the history until the last check if more than half of the space quota is in
// use.
func (c *Compactor) checkSpace(ctx context.Context) error {
	if c.Meter.left.Load() >= 0 {
		return nil // a write was counted after the check before had begun
	}
	status, _, err := unanswered.Retry(ctx, "status", func(bool) (*clientv3.StatusResponse, error) { return c.Status(ctx) })
	defer func() { c.Meter.left.Store(c.step) }()
	denied := grpcstatus.Code(err) == codes.PermissionDenied
	if denied && c.denied {
		return nil // logged before
	}
	c.denied = denied
	if err != nil {
		return fmt.Errorf("get how much space etcd uses: %w", err)
	}
	if status.DbSizeQuota <= 0 { // etcd has no limit
		return nil
	}
	until := c.checked
	c.checked, c.step = status.Header.Revision, status.DbSizeQuota/quotaPart
	early := status.DbSizeInUse > status.DbSizeQuota/2
	if early != c.early {
		klog.FromContext(ctx).Info("Checked the space of etcd: while more than half is in use, its history is compacted early",
			"early", early, "bytesInUse", status.DbSizeInUse, "quotaBytes", status.DbSizeQuota)
		c.early = early
	}
	if !early || until == 0 {
		return nil
	}
	// Etcd carries out one compaction after the other: without the wait for its end, more could
	// be requested than it carries out.
	_, _, err = unanswered.Retry(ctx, "compaction", func(bool) (*clientv3.CompactResponse, error) {
		return c.Client.Compact(ctx, until, clientv3.WithCompactPhysical())
	})
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact revision %d early: %w", until, err)
	}
	c.noteCompacted(until)
	return nil
}
