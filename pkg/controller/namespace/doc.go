// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespace runs the namespace controller. It watches for Namespaces that
// are being deleted, and processes several of them in parallel with package
// purge until they are removed.
//
// # Events
//
// No step of a termination waits for a fixed time. A Namespace is processed when
// the watch shows that it is Terminating or has changed. While content remains that
// waits for a finalizer or a grace period, its resources are watched in that
// Namespace only, with metadata only, until no object remains; then the controller
// processes the Namespace at once. An informer of all Pods would do the same, at a
// cost that grows with the Pods of all Namespaces, few of which are Terminating at
// any time. The number of such watches is bounded: a new one replaces the one that has
// been open longest. A Namespace whose watch ends after a while, because a server restarts,
// is processed at once. One without a watch, or whose watch fails soon, is processed again
// after its backoff, as is one with an error.
//
// # Fairness
//
// Backoff is per Namespace. All passes are in one queue, but at most half of the
// workers make retries: passes over Namespaces that an earlier pass did not finish.
// The other retries that are due wait for one of these slots, outside of the queue.
// A first pass that takes long moves to a slot too, or is canceled and retried. A pass
// because content was removed counts as a first one; a pass because finalizers of
// content changed, which tenants can repeat, counts as a retry. So a Namespace that is
// deleted now, or whose content is removed now, finds a worker, regardless of how many
// others are stuck and how long each of their passes takes. Neither do first passes
// starve the retries: the queue is first in, first out.
package namespace
