// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespace runs the namespace controller: it watches for Namespaces
// that are being deleted and has each purged by package deletion, several side
// by side, until it is gone.
//
// # What wakes it
//
// No step of a termination waits for a fixed time. A Namespace is worked on
// when the watch shows that it is terminating or has changed. While content
// remains that waits for others (a finalizer, a grace period), its kinds are
// watched in that Namespace alone, metadata only, and only for as long: a kind
// that has drained wakes the controller at once. An informer over all Pods
// would do the same, at a cost that grows with the Pods of all Namespaces, few
// of which terminate at any time. The number of such watches is bounded; a
// Namespace for which there is none left, or whose watch breaks, is looked at
// again by its backoff, as is one where something failed.
//
// # Fairness
//
// Backoff is per Namespace. A Namespace that did not get through goes on in a
// queue with workers of its own, so that however many are stuck, and however
// long each attempt of theirs takes, a Namespace that is deleted now, or whose
// content is gone now, finds a worker.
package namespace
