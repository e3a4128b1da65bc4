// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package boroughtest runs Borough in the process of a test: a standalone server with its
// embedded etcd, and the namespace controller. It is for tests of controllers and other
// clients of Kubernetes. Unlike an API server without controllers, it deletes Namespaces
// with all that is in them. It needs Linux or macOS.
//
// Start starts a server for a test. Shared returns one for all tests of a package, whose
// TestMain must then call Main.
//
// A server and a controller in the process write their log with klog, whose settings are
// those of the process. From the first start on, unless go test is verbose, what klog would
// write to the standard error is held back, also what the test itself logs with klog. Tests
// that fail log the end of it. The package registers no flags, but sets some defaults for the
// process: feature gates of the API server library, the allow-list of metric labels, and the
// size of the files of etcd's log. A server cannot run in a bubble of testing/synctest, because
// it waits for the network.
package boroughtest
