// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deletion purges the content of a terminating Namespace and then lets
// go of the Namespace. It decides and deletes; when to try again is for the
// caller to know, who reads it from the error that Deleter.Delete returns.
//
// One pass goes like this. The kinds of content come from discovery. Pods are
// deleted first; the other kinds follow, side by side, when no Pod is left. Our
// own server is asked to delete a kind at once and says whether anything is
// left; a kind is listed first where an earlier pass has left something, lest
// the same objects are asked again and again, and where another server has it.
// When nothing is left, the finalizer "kubernetes" is taken from the Namespace,
// and others' finalizers are left alone.
//
// # Truth
//
// Conditions are decided by lists that were made after the deletes of the same
// pass, or by the server's word that a deletecollection has left nothing. Where
// something could not be read, the condition is Unknown rather than
// a guess. A pass that goes through without a hitch writes no status: the
// Namespace is gone before anyone could read it.
//
// # Status
//
// status.termination says the same in a form that is bounded in size, and when
// something last moved. What has to be remembered for that from pass to pass is
// a Progress, which also sees to it that a status that goes on changing is
// written only now and then, save where the old one would say too much.
//
// # Incarnations
//
// A Namespace may be deleted and created again under its name while a slow
// request of the old one's purge is still on its way. Every step is therefore
// bound to a UID: an object that is deleted by name carries its own UID as a
// precondition, and was listed before the Namespace was read live with the
// expected UID; a deletecollection carries the Namespace's UID in a header
// (v1.NamespaceUIDHeader) for the server to compare, and follows such a read
// where the server may not know the header; an update carries UID and resourceVersion, a delete of the
// Namespace its UID.
package deletion
