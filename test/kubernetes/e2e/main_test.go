// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Borough behind the kube-apiserver of a real Kubernetes
// cluster: what users see through the aggregator, and how the cluster and
// Borough affect each other.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// The tests share a cluster with Borough; each has its own Namespaces.
var (
	cluster *testcluster.Cluster
	borough *testcluster.Borough
	// auditLog is the path of the server's audit log.
	auditLog string
	// spans collects the spans of kube-apiserver and Borough's server.
	spans *collector
)

func TestMain(m *testing.M) { harness.Main(m, run) }

func run(m *testing.M) (code int, err error) {
	// Build all programs before a test waits for a process.
	if _, err := harness.Binary("borough-apiserver"); err != nil {
		return 0, err
	}
	files, err := os.MkdirTemp("", "borough-e2e-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(files)) }()
	tracing := filepath.Join(files, "tracing.yaml")
	if spans, err = startCollector(tracing); err != nil {
		return 0, err
	}
	defer spans.server.Stop()
	// The processes export their spans at this interval, in milliseconds.
	if err := os.Setenv("OTEL_BSP_SCHEDULE_DELAY", "200"); err != nil {
		return 0, err
	}
	ctx := context.Background()
	cluster, err = testcluster.Start(ctx, testcluster.Options{
		Etcd:           testcluster.EtcdOptions{Unsafe: true},
		APIServerFlags: []string{"--tracing-config-file=" + tracing, ownerReferencesPlugin},
	})
	if err != nil {
		return 0, err
	}
	defer func() {
		if code != 0 || err != nil {
			fmt.Fprintln(os.Stderr, cluster.Logs())
		}
		err = errors.Join(err, cluster.Stop())
	}()

	auditLog = filepath.Join(files, "audit.log")
	policy := filepath.Join(files, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return 0, fmt.Errorf("write the audit policy: %w", err)
	}
	borough, err = cluster.Deploy(ctx, testcluster.BoroughOptions{
		Etcd:        cluster.Etcd,
		ServerFlags: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + auditLog, "--etcd-prefix=/borough", "--tracing-config-file=" + tracing, "--etcd-count-metric-poll-period=1s", ownerReferencesPlugin},
	})
	if err != nil {
		return 0, err
	}
	defer func() {
		if code != 0 || err != nil {
			fmt.Fprintln(os.Stderr, borough.Logs())
		}
		err = errors.Join(err, borough.Stop())
	}()
	return m.Run(), nil
}
