// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package coregroup

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// The managed fields of a stored object are all in the version of our group. With some
// in that of core/v1, server-side apply would convert objects to it, and lose the fields
// that it does not have.

var ownVersion, coreVersion = v1.SchemeGroupVersion.String(), corev1.SchemeGroupVersion.String()

// OwnManagedFields returns the managed fields of an object in the version of our group.
// The entries of a manager in both versions become one.
func OwnManagedFields(fields []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	if !haveVersion(fields, coreVersion) {
		return fields
	}
	var merged []metav1.ManagedFieldsEntry
	for _, entry := range withVersion(fields, coreVersion, ownVersion) {
		i := slices.IndexFunc(merged, func(e metav1.ManagedFieldsEntry) bool { return sameManager(&e, &entry) })
		if i < 0 {
			merged = append(merged, entry)
			continue
		}
		merged[i].FieldsV1 = union(merged[i].FieldsV1, parse(entry.FieldsV1))
		if merged[i].Time.Before(entry.Time) {
			merged[i].Time = entry.Time
		}
	}
	return merged
}

func coreManagedFields(fields []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	return withVersion(fields, ownVersion, coreVersion)
}

// withVersion replaces a version. It does not change the given slice.
func withVersion(fields []metav1.ManagedFieldsEntry, from, to string) []metav1.ManagedFieldsEntry {
	if !haveVersion(fields, from) {
		return fields
	}
	fields = slices.Clone(fields)
	for i := range fields {
		if fields[i].APIVersion == from {
			fields[i].APIVersion = to
		}
	}
	return fields
}

func haveVersion(fields []metav1.ManagedFieldsEntry, version string) bool {
	return slices.ContainsFunc(fields, func(e metav1.ManagedFieldsEntry) bool { return e.APIVersion == version })
}

// ownFields are the fields that core/v1 does not have.
var ownFields = fieldpath.MakePrefixMatcherOrDie("spec", "deletionProtection").
	Merge(fieldpath.MakePrefixMatcherOrDie("status", "termination"))

// sharedFields contain ownFields and others. A manager of one of them, alone, does not
// manage what it contains.
var sharedFields = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status"))

// KeepManagers returns the managed fields of an object after an update in the core
// group: those of the update, with the managers that the fields which core/v1 does not
// have had before. If nothing else of the object has changed, and only times differ, and with
// them the order, nothing was updated, and it returns those before.
func KeepManagers(updated, before []metav1.ManagedFieldsEntry, objectChanged bool) []metav1.ManagedFieldsEntry {
	updated = slices.Clone(updated)
	for _, old := range before {
		kept := parse(old.FieldsV1).FilterIncludeMatches(ownFields).Difference(sharedFields)
		if kept.Empty() {
			continue
		}
		i := slices.IndexFunc(updated, func(e metav1.ManagedFieldsEntry) bool { return sameManager(&e, &old) })
		if i < 0 {
			i = len(updated)
			updated = append(updated, old)
			updated[i].FieldsV1 = nil
		}
		updated[i].FieldsV1 = union(updated[i].FieldsV1, kept)
	}
	changed := func(entry metav1.ManagedFieldsEntry) bool {
		return !slices.ContainsFunc(before, func(old metav1.ManagedFieldsEntry) bool {
			return sameManager(&entry, &old) && parse(entry.FieldsV1).Equals(parse(old.FieldsV1))
		})
	}
	if !objectChanged && len(updated) == len(before) && !slices.ContainsFunc(updated, changed) {
		return before
	}
	return updated
}

func sameManager(a, b *metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource && a.APIVersion == b.APIVersion
}

// union returns the fields with those of a set.
func union(fields *metav1.FieldsV1, more *fieldpath.Set) *metav1.FieldsV1 {
	raw, err := parse(fields).Union(more).ToJSON()
	if err != nil {
		return fields // cannot happen: what was parsed can be written
	}
	return metav1.NewFieldsV1(string(raw))
}

// parse returns the set of fields. It is empty if there is none that can be read.
func parse(fields *metav1.FieldsV1) *fieldpath.Set {
	set := &fieldpath.Set{}
	if fields == nil || set.FromJSON(fields.GetRawReader()) != nil {
		return &fieldpath.Set{}
	}
	return set
}
