// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testcluster runs a real Kubernetes control plane on this machine for
// tests, comparisons and benchmarks: the processes etcd, kube-apiserver and
// kube-controller-manager, and kubectl. Borough can be deployed into it.
//
//	cluster, err := testcluster.Start(ctx, testcluster.Options{})
//	defer cluster.Stop()
//	borough, err := cluster.Deploy(ctx, testcluster.BoroughOptions{})
//	defer borough.Stop()
//
// In a test, use New, StartEtcdForTest and NewBorough. They stop everything when
// the test ends, and show the logs if it failed.
//
// hack/kubernetes.sh builds the programs once, Kubernetes at the version that the module
// in the directory kube pins. Set BOROUGH_KUBERNETES_BIN to a directory that
// already has them. That module is separate so that no other has k8s.io/kubernetes
// and the replace directives that it needs, and so that another release of
// Kubernetes can be tested. This module is separate to keep its dependencies out
// of the product's go.mod.
//
// The cluster is set up as kubeadm does it: TLS with client certificates
// everywhere, RBAC, a front proxy with its own CA, and controllers that use
// their service accounts. Two things differ: there are no nodes, so no Pod
// runs; and the addresses of Services and Pods are unreachable. kube-apiserver
// instead reaches the backends of a Service through a proxy (see Network) that
// connects to this machine's loopback interface. A Service is therefore an
// ordinary one, and its EndpointSlices have any address and the port that the
// process listens on.
package testcluster
