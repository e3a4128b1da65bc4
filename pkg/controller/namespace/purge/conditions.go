// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/discovery"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/truncate"
)

// maxMessage is the maximum length of the message of a condition, in bytes. It is
// that of metav1.Condition.
const maxMessage = 32768

// findings are the result of a pass.
type findings struct {
	Discovered
	resources []*resourceState
	// podsFirst means that other resources were not deleted because not all Pods
	// are known to be gone.
	podsFirst bool
	// purgeErr is why the last NamespacePurge failed; nil if it succeeded or was not
	// created. The server may then have content that is not discovered.
	purgeErr error
	// finalizeErr is why the Namespace could not be finalized although no content
	// was found; nil if that succeeded or was not tried.
	finalizeErr error
}

// unpurged reports whether only a purge, which failed, could show whether content is left.
func (f *findings) unpurged() bool { return f.finalizeErr != nil && f.purgeErr != nil }

// unseen reports whether the server may have content that only a purge shows, and none has
// reached it: it stopped at Pods, failed or was not necessary.
func (f *findings) unseen() bool { return f.Standalone && (f.podsFirst || f.purgeErr != nil) }

// err returns nil if no content was found, nothing failed, and no more errors
// are given.
func (f *findings) err(more ...error) error {
	failure := utilerrors.NewAggregate(slices.Concat(f.failures(), []error{f.Failure, f.ParseFailure}, more))
	remaining := f.remaining()
	if len(remaining) == 0 {
		return failure
	}
	return &ContentRemainingError{Content: remaining, Failure: failure}
}

// remaining returns the content that is marked for deletion and still exists.
func (f *findings) remaining() []Remaining {
	var remaining []Remaining
	for _, r := range f.resources {
		if !r.read || len(r.items) == 0 || f.podsFirst && !isPods(r.Resource) {
			continue
		}
		objects := map[types.UID][]string{}
		for uid, it := range r.items {
			objects[uid] = it.finalizers
		}
		remaining = append(remaining, Remaining{Resource: r.Resource, ResourceVersion: r.resourceVersion, Objects: objects})
	}
	return remaining
}

// failures returns the errors of the resources, and that of the purge if they have none.
func (f *findings) failures() []error {
	var errs []error
	for _, r := range f.resources {
		if r.err != nil {
			errs = append(errs, r.err)
		}
	}
	if f.unpurged() {
		errs = append(errs, f.purgeErr)
	}
	return errs
}

// conditions returns the five conditions, without times. Types, reasons and
// messages are those of Kubernetes' namespace controller, except that a condition
// is Unknown if not everything could be read.
func (f *findings) conditions() []v1.NamespaceCondition {
	conditions := []v1.NamespaceCondition{
		f.discoveryCondition(),
		f.parsingCondition(),
		f.contentFailureCondition(),
		f.contentRemainingCondition(),
		f.finalizersRemainingCondition(),
	}
	for i := range conditions {
		conditions[i].Message = truncate.Text(conditions[i].Message, maxMessage)
	}
	return conditions
}

func (f *findings) discoveryCondition() v1.NamespaceCondition {
	c := v1.NamespaceCondition{
		Type:    v1.NamespaceDeletionDiscoveryFailure,
		Status:  corev1.ConditionFalse,
		Reason:  "ResourcesDiscovered",
		Message: "All resources successfully discovered",
	}
	if f.Failure != nil {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "DiscoveryFailed", f.Failure.Error()
		if groups, ok := discovery.GroupDiscoveryFailedErrorGroups(f.Failure); ok {
			c.Message = fmt.Sprintf("Discovery failed for some groups, %d failing: %v", len(groups), f.Failure)
		}
	}
	return c
}

func (f *findings) parsingCondition() v1.NamespaceCondition {
	c := v1.NamespaceCondition{
		Type:    v1.NamespaceDeletionGVParsingFailure,
		Status:  corev1.ConditionFalse,
		Reason:  "ParsedGroupVersions",
		Message: "All legacy kube types successfully parsed",
	}
	if f.ParseFailure != nil {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "GroupVersionParsingFailed", f.ParseFailure.Error()
	}
	return c
}

func (f *findings) contentFailureCondition() v1.NamespaceCondition {
	c := v1.NamespaceCondition{
		Type:    v1.NamespaceDeletionContentFailure,
		Status:  corev1.ConditionFalse,
		Reason:  "ContentDeleted",
		Message: "All content successfully deleted, may be waiting on finalization",
	}
	errs := f.failures()
	if len(errs) == 0 && f.Standalone && f.purgeErr != nil {
		errs = []error{f.purgeErr} // what it could not delete is not known
	}
	if len(errs) > 0 {
		c.Status, c.Reason = corev1.ConditionTrue, "ContentDeletionFailed"
		var messages []string
		for _, err := range errs {
			messages = append(messages, err.Error())
		}
		slices.Sort(messages)
		c.Message = fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(messages), strings.Join(messages, ", "))
		return c
	}
	notDeleting := slices.ContainsFunc(f.resources, func(r *resourceState) bool { return r.notDeleting > 0 })
	switch {
	case f.podsFirst && (notDeleting || f.unseen()):
		c.Message = "All pods successfully deleted, may be waiting on finalization; other content follows when no pod is left"
	case notDeleting:
		c.Message = "No deletion failed so far, not all content has been deleted yet"
	}
	return c
}

func (f *findings) contentRemainingCondition() v1.NamespaceCondition {
	var remaining []string
	for _, r := range f.resources {
		if r.total > 0 {
			remaining = append(remaining, fmt.Sprintf("%s.%s has %d resource instances", r.GroupVersionResource.Resource, r.Group, r.total))
		}
	}
	return f.remainingCondition(v1.NamespaceContentRemaining, remaining,
		"SomeResourcesRemain", "Some resources are remaining: ",
		"ContentRemoved", "All content successfully removed")
}

func (f *findings) finalizersRemainingCondition() v1.NamespaceCondition {
	instances := map[string]int{}
	for _, r := range f.resources {
		for _, it := range r.items {
			for _, finalizer := range it.finalizers {
				instances[finalizer]++
			}
		}
	}
	var remaining []string
	for finalizer, n := range instances {
		remaining = append(remaining, fmt.Sprintf("%s in %d resource instances", finalizer, n))
	}
	return f.remainingCondition(v1.NamespaceFinalizersRemaining, remaining,
		"SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: ",
		"ContentHasNoFinalizers", "All content-preserving finalizers finished")
}

// remainingCondition returns a condition that is True if something is known to
// remain, Unknown if nothing was found but not everything was read, and False
// otherwise.
func (f *findings) remainingCondition(t v1.NamespaceConditionType, remaining []string, reason, message, okReason, okMessage string) v1.NamespaceCondition {
	if len(remaining) > 0 {
		slices.Sort(remaining)
		return v1.NamespaceCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message + strings.Join(remaining, ", ")}
	}
	var unread []string
	for _, r := range f.resources {
		if !r.read {
			unread = append(unread, r.GroupResource().String())
		}
	}
	if f.Failure != nil || f.ParseFailure != nil {
		unread = append(unread, "resources that could not be discovered")
	}
	if f.unseen() || f.unpurged() || apierrors.HasStatusCause(f.finalizeErr, v1.NamespaceNotEmptyCause) {
		unread = append(unread, "resources that only the server sees")
	}
	if len(unread) > 0 {
		slices.Sort(unread)
		return v1.NamespaceCondition{Type: t, Status: corev1.ConditionUnknown, Reason: "ContentUnknown",
			Message: "Not all content could be read: " + strings.Join(unread, ", ")}
	}
	return v1.NamespaceCondition{Type: t, Status: corev1.ConditionFalse, Reason: okReason, Message: okMessage}
}

// setConditions updates the conditions of a status and reports whether that
// changed them. lastTransitionTime changes only with the status of a condition.
func setConditions(status *v1.NamespaceStatus, conditions []v1.NamespaceCondition, now metav1.Time) bool {
	changed := false
	for _, c := range conditions {
		c.LastTransitionTime = now
		i := slices.IndexFunc(status.Conditions, func(old v1.NamespaceCondition) bool { return old.Type == c.Type })
		if i < 0 {
			status.Conditions = append(status.Conditions, c)
			changed = true
			continue
		}
		old := &status.Conditions[i]
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		if *old != c {
			*old = c
			changed = true
		}
	}
	return changed
}
