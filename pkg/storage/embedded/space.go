// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2"
)

// makeRoom frees the space of deleted objects if the alarm for a full database is
// set, and clears the alarm if the database is then below its quota. For an external
// etcd an administrator would do this with etcdctl, which cannot connect to this
// member. While the alarm is set, the history is not compacted otherwise, because
// servers write a key to agree on when to compact. Without the alarm, it makes the file
// smaller if much of it is free.
func (s *Server) makeRoom(ctx context.Context) error {
	client := s.Client()
	backend, quota := s.etcd.Server.Backend(), s.etcd.Config().QuotaBackendBytes
	var alarms *clientv3.AlarmResponse
	err := retryTimeout(ctx, func() (err error) {
		alarms, err = client.AlarmList(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("list alarms: %w", err)
	}
	i := slices.IndexFunc(alarms.Alarms, func(a *etcdserverpb.AlarmMember) bool { return a.Alarm == etcdserverpb.AlarmType_NOSPACE })
	if i < 0 {
		if backend.Size()-backend.SizeInUse() >= quota/defragPart {
			s.defragment(ctx)
		}
		return nil
	}
	err = retryTimeout(ctx, func() error {
		_, err := client.Compact(ctx, s.etcd.Server.KV().Rev(), clientv3.WithCompactPhysical())
		return err
	})
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact the full database: %w", err)
	}
	s.defragment(ctx)
	if size := backend.Size(); size >= quota {
		klog.FromContext(ctx).Info("The database is full: delete objects, and restart", "bytes", size, "quota", quota)
		return nil
	}
	err = retryTimeout(ctx, func() error {
		_, err := client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarms.Alarms[i]))
		return err
	})
	if err != nil {
		return fmt.Errorf("clear the alarm that the database is full: %w", err)
	}
	return nil
}

// defragment makes the file of the database smaller. For this, etcd copies what is in use to
// another file. Without the space for the copy, the file stays as it is: the server works with
// it, and a disk that is full ends etcd.
func (s *Server) defragment(ctx context.Context) {
	logger := klog.FromContext(ctx)
	backend := s.etcd.Server.Backend()
	available, err := availableSpace(s.dir.path)
	if needed := backend.SizeInUse() / 4 * 5; err == nil && available < needed {
		logger.Info("The file of the database is not made smaller, because the disk has no space for a copy", "available", available, "needed", needed)
		return
	}
	if err == nil {
		if err = backend.Defrag(); err != nil {
			err = errors.Join(err, s.dir.removeCopies())
		}
	}
	if err != nil {
		logger.Error(err, "Could not make the file of the database smaller")
	}
}

// availableSpace returns how many bytes can be written to the disk of a file.
func availableSpace(path string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(path, &disk); err != nil {
		return 0, fmt.Errorf("get the space on the disk of %q: %w", path, err)
	}
	return int64(disk.Bavail) * int64(disk.Bsize), nil // the types differ between systems
}
