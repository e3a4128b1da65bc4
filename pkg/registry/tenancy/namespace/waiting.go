// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/table"
	"github.com/borough-io/borough/pkg/truncate"
)

const (
	// maxParts is how many things a cell names before it counts the rest.
	maxParts = 3
	// maxErrorInCell is the maximum length in bytes of an error in a cell.
	maxErrorInCell = 160
)

// waitingFor returns a short text with what a Terminating Namespace waits for, as it
// was last read from storage.
func waitingFor(ns *tenancy.Namespace) string {
	if ns.Status.Phase != tenancy.NamespaceTerminating {
		return table.None
	}
	parts := waitsForContent(ns.Status.Termination)
	explained := len(parts) > 0
	for _, f := range ns.Spec.Finalizers {
		// The controller's own stays for what has been named already.
		if f != tenancy.FinalizerKubernetes || !explained {
			parts = append(parts, "finalizer "+string(f))
		}
	}
	for _, f := range ns.Finalizers {
		parts = append(parts, "finalizer "+f)
	}
	if len(parts) == 0 {
		return "content" // all that can hold it now
	}
	return join(parts, maxParts)
}

func waitsForContent(t *tenancy.NamespaceTermination) []string {
	if t == nil {
		return nil
	}
	var waits, later []string
	for i := range t.Remaining {
		r := &t.Remaining[i]
		if why := blocker(r); why != "" {
			waits = append(waits, subject(r)+" ("+why+")")
		} else {
			later = append(later, subject(r))
		}
	}
	if t.OmittedResources > 0 {
		later = append(later, fmt.Sprintf("%d more resources", t.OmittedResources))
	}
	for _, u := range t.Undiscovered {
		group := u.GroupVersion
		if group == "" {
			group = "API groups"
		}
		waits = append(waits, "discovery of "+group)
	}
	if t.LastError != "" {
		waits = append(waits, "its own removal (failed)")
	}
	if len(waits) == 0 {
		return later
	}
	return waits // what is next in line is not what it waits for
}

// subject names an object as kubectl does, or counts several.
func subject(r *tenancy.RemainingResource) string {
	switch {
	case r.Count == nil:
		return resourceName(r)
	case *r.Count == 1 && len(r.Objects) == 1:
		return resourceName(r) + "/" + r.Objects[0].Name
	default:
		return fmt.Sprintf("%d %s", *r.Count, resourceName(r))
	}
}

// resourceName leaves out the group where it is that of the Namespace itself.
func resourceName(r *tenancy.RemainingResource) string {
	switch r.Group {
	case tenancy.GroupName:
		return r.Resource
	case "":
		return r.Resource + ".v1." // as kubectl takes resources of the core group
	default:
		return r.Resource + "." + r.Group
	}
}

// blocker returns a short text with the reason why the objects of a resource remain.
// It is empty for objects that are not marked for deletion.
func blocker(r *tenancy.RemainingResource) string {
	switch {
	case r.Count == nil:
		return "cannot be listed"
	case r.LastError != "":
		return "cannot be deleted"
	}
	var finalizers []string
	waits := ""
	for i := range r.Objects {
		o := &r.Objects[i]
		for _, f := range o.Finalizers {
			if o.DeletionTimestamp != nil && !slices.Contains(finalizers, f) {
				finalizers = append(finalizers, f)
			}
		}
		if waits == "" {
			waits = deletionState(o)
		}
	}
	if len(finalizers) > 0 {
		return "finalizer " + join(finalizers, 2)
	}
	return waits
}

// deletionState describes in a few words how far the deletion of an object
// without finalizers is. It is empty before the deletion.
func deletionState(o *tenancy.RemainingObject) string {
	switch {
	case o.DeletionTimestamp == nil:
		return ""
	case o.DeletionGracePeriodSeconds == nil || *o.DeletionGracePeriodSeconds == 0:
		return "being deleted"
	case time.Now().Before(o.DeletionTimestamp.Time):
		return "grace period"
	default:
		return "grace period is over"
	}
}

// lastProgress returns how long ago the last progress was.
func lastProgress(ns *tenancy.Namespace) string {
	switch {
	case ns.Status.Phase != tenancy.NamespaceTerminating:
		return table.None
	case ns.Status.Termination == nil:
		// Nothing that the server writes is Terminating without the time.
		return table.Age(ptr.Deref(ns.DeletionTimestamp, metav1.Time{}))
	default:
		return table.Age(ns.Status.Termination.LastProgressTime)
	}
}

// details names what remains, object by object, with errors.
func details(ns *tenancy.Namespace) string {
	t := ns.Status.Termination
	if t == nil {
		return table.None
	}
	var parts []string
	for i := range t.Remaining {
		parts = append(parts, resourceDetails(&t.Remaining[i]))
	}
	if t.OmittedResources > 0 {
		parts = append(parts, fmt.Sprintf("%d more resources", t.OmittedResources))
	}
	for _, u := range t.Undiscovered {
		parts = append(parts, strings.TrimPrefix(u.GroupVersion+": "+truncate.Line(u.LastError, maxErrorInCell), ": "))
	}
	if t.LastError != "" {
		parts = append(parts, truncate.Line(t.LastError, maxErrorInCell))
	}
	if len(parts) == 0 {
		return table.None
	}
	return strings.Join(parts, "; ")
}

func resourceDetails(r *tenancy.RemainingResource) string {
	var objects []string
	for i := range r.Objects {
		o := &r.Objects[i]
		switch why := deletionState(o); {
		case len(o.Finalizers) > 0:
			objects = append(objects, fmt.Sprintf("%s (%s)", o.Name, strings.Join(o.Finalizers, ", ")))
		case why != "":
			objects = append(objects, fmt.Sprintf("%s (%s)", o.Name, why))
		default:
			objects = append(objects, o.Name)
		}
	}
	if r.Count != nil && int(*r.Count) > len(objects) {
		objects = append(objects, fmt.Sprintf("%d more", int(*r.Count)-len(objects)))
	}
	text := resourceName(r)
	if len(objects) > 0 {
		text += ": " + strings.Join(objects, ", ")
	}
	if r.LastError != "" {
		text += ": " + truncate.Line(r.LastError, maxErrorInCell)
	}
	return text
}

// join lists the first few texts and counts the rest.
func join(texts []string, limit int) string {
	if more := len(texts) - limit; more > 0 {
		texts = append(slices.Clone(texts[:limit]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}
