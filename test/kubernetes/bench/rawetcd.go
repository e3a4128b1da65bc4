// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

const rawClients = 64

// measureEtcd measures how fast etcd deletes keys one by one: embedded, as
// Borough runs it, and over gRPC with TLS, as kube-apiserver uses it. No purge
// can be faster.
func (b *bench) measureEtcd(ctx context.Context, _ int) (err error) {
	dir, err := os.MkdirTemp("", "borough-bench-etcd-")
	if err != nil {
		return fmt.Errorf("make a directory for etcd: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	inProcess, err := rawInProcess(ctx, filepath.Join(dir, "embedded"), b.size)
	if err != nil {
		return err
	}
	overGRPC, err := rawOverGRPC(ctx, filepath.Join(dir, "member"), b.size)
	if err != nil {
		return err
	}
	b.report.add(alone, []figure{
		{row: "Raw etcd, deletes in the process", unit: perSecond, value: inProcess},
		{row: "Raw etcd, deletes over gRPC", unit: perSecond, value: overGRPC},
	})
	return nil
}

func rawInProcess(ctx context.Context, dir string, size size) (_ float64, err error) {
	server, err := embedded.Start(klog.NewContext(ctx, klog.Logger{}), embedded.Config{Dir: dir})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	return rawRate(ctx, server.Client(), size.keys)
}

func rawOverGRPC(ctx context.Context, dir string, size size) (float64, error) {
	etcd, err := testcluster.StartEtcd(ctx, dir, testcluster.EtcdOptions{})
	if err != nil {
		return 0, err
	}
	defer etcd.Kill()
	client, err := etcd.NewClient()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	return rawRate(ctx, client, size.keys)
}

// rawRate puts keys of the size of a Pod and returns how many it can delete per
// second.
func rawRate(ctx context.Context, client *clientv3.Client, keys int) (float64, error) {
	value := strings.Repeat("x", 1<<10)
	if _, err := rawLoad(ctx, keys, func(ctx context.Context, key string) error {
		_, err := client.Put(ctx, key, value)
		return err
	}); err != nil {
		return 0, err
	}
	took, err := rawLoad(ctx, keys, func(ctx context.Context, key string) error {
		_, err := client.Delete(ctx, key)
		return err
	})
	return float64(keys) / took.Seconds(), err
}

func rawLoad(ctx context.Context, keys int, do func(ctx context.Context, key string) error) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var working sync.WaitGroup
	began := time.Now()
	for range rawClients {
		working.Go(func() {
			for i := next.Add(1); i <= int64(keys) && ctx.Err() == nil; i = next.Add(1) {
				if err := do(ctx, fmt.Sprintf("/bench/pods/ns/pod-%d", i)); err != nil {
					cancel(fmt.Errorf("raw etcd: %w", err))
				}
			}
		})
	}
	working.Wait()
	return time.Since(began), context.Cause(ctx)
}
