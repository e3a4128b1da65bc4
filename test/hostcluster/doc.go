// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostcluster runs a real Kubernetes control plane on this machine for
// tests, comparisons and benchmarks: etcd, kube-apiserver and
// kube-controller-manager, each a process of its own, and kubectl to drive them.
// Borough can be deployed into it.
//
//	cluster, err := hostcluster.Start(ctx, hostcluster.Options{})
//	defer cluster.Stop()
//	borough, err := cluster.Deploy(ctx, hostcluster.BoroughOptions{})
//	defer borough.Stop()
//
// In a test, New and NewBorough do that, stop everything at the end, and show the
// logs if the test failed.
//
// hack/hostcluster.sh builds the programs, once, from the versions that the
// module in the folder kube pins; BOROUGH_HOSTCLUSTER_BIN names a directory that
// has them already. That module is one of its own because Kubernetes needs its
// libraries at its own version, which is not Borough's. This one shares the
// libraries with Borough and is apart from it only to keep what it needs out of
// the product's go.mod.
//
// The cluster is set up as kubeadm does it: TLS with client certificates
// everywhere, RBAC, a front proxy with its own CA, controllers that use their
// service accounts. What differs: there are no nodes, so no Pod runs, and nothing
// makes the addresses of Services and Pods reachable. In place of that network
// kube-apiserver reaches whatever is behind a Service through a proxy (see
// Network), which takes it to this machine's loopback interface. A Service is
// therefore the usual one, and its backends are named by EndpointSlices: any
// address, and the port that the process really listens on.
package hostcluster
