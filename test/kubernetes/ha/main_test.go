// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ha tests the availability of Borough: two servers and two controllers
// with an etcd of three members, with TLS, behind the aggregator of a real
// Kubernetes cluster. Each of them is restarted, killed or paused while clients
// write, read and watch.
package ha

import (
	"testing"

	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m) }
