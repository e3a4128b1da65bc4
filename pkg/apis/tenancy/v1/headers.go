// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// NamespaceUIDHeader names the request header with which a client binds a
// deletecollection to one incarnation of a Namespace: its value is the UID of
// the Namespace whose content is meant. A Namespace that was created again
// under the same name has another UID. The server deletes nothing and answers
// Conflict unless the Namespace has that UID and is being deleted, and NotFound
// if there is none; its answer otherwise is a Status, without the objects that
// it has deleted.
const NamespaceUIDHeader = "Borough-Namespace-Uid"

// RemainingObjectsHeader names the header of a reply to a deletecollection with
// NamespaceUIDHeader. Its value is the number of objects that the request
// selects and that are still there, waiting for a finalizer or for whoever runs
// them. Since a Namespace that is being deleted gets no new objects, 0 means that
// there are none and will be none. It is missing where this is not known: when
// not all were asked to go.
const RemainingObjectsHeader = "Borough-Remaining-Objects"

// DeletedObjectsHeader names the header that comes with RemainingObjectsHeader.
// Its value is the number of objects that the request has removed.
const DeletedObjectsHeader = "Borough-Deleted-Objects"
