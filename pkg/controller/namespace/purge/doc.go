// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package purge deletes the content of a Terminating Namespace and then
// finalizes the Namespace. It makes one pass at a time; its caller schedules the
// next one from the error that Deleter.Delete returns.
//
// # A pass
//
// Discovery lists the resources that are content. The controller creates a
// NamespacePurge, with which our server deletes the content of our own API group:
// quotas, then Pods, and the other resources when no Pod is left. The status of the
// NamespacePurge reports what is left. The resources of other groups
// (--purge-api-groups) are then deleted with deletecollection, Pods first.
// Where a server refuses either, the objects are deleted one by one.
//
// The first pass over a Namespace does not list our resources before it purges
// them, since usually nothing is left afterwards. A later pass lists them, and
// skips the purge while Pods remain that all wait for a grace period or a finalizer. When no
// Pod remains it always purges, because the server may have content that is not
// discovered: a standalone server has rights, Events and Leases.
//
// When nothing is left, the finalizer "kubernetes" is removed from the Namespace: by
// the NamespacePurge, if nothing else holds the Namespace, or else by a request to
// finalize. Other finalizers are not changed. If the NamespacePurge failed, the server may
// have content that is not discovered. The finalizer then stays while another one holds
// the Namespace; if none does, the server verifies that the Namespace is empty before it
// removes it.
//
// # Conditions and status.termination
//
// What the status reports comes from lists that were made after the deletes of
// the same pass, or from a NamespacePurge that left nothing. If something could
// not be read, its condition is Unknown. A pass that completes writes no status,
// since it ends with the removal of the Namespace.
//
// Progress remembers between passes when something last changed, and limits how
// often the status is written. A status that claims too much is always replaced
// at once.
//
// # Incarnations
//
// A Namespace can be deleted and created again under the same name while a slow
// request for the old one is still on its way. Every step is therefore bound to a
// UID: a NamespacePurge carries the UID of the Namespace; a delete of an object
// carries the UID of the object, which was listed before the Namespace was read
// with the expected UID; an update of the Namespace carries its UID and
// resourceVersion, and a delete its UID. Only the deletecollection of another
// group cannot be bound; the Namespace is read right before it.
package purge
