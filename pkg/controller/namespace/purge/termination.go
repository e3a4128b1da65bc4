// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/truncate"
)

// Limits on the size of status.termination. Its API documentation has the same
// numbers.
const (
	maxResources    = 10
	maxObjects      = 5
	maxFinalizers   = 5
	maxUndiscovered = 10
	maxError        = 512 // bytes
)

// termination returns what the Namespace waits for, without the time of the last
// progress and the fields that the server sets.
func (f *findings) termination() *v1.NamespaceTermination {
	var resources []*resourceState
	for _, r := range f.resources {
		if !r.gone() || r.err != nil {
			resources = append(resources, r)
		}
	}
	// Resources of equal rank keep the order of discovery, which is by name.
	slices.SortStableFunc(resources, func(a, b *resourceState) int { return cmp.Compare(rank(a), rank(b)) })
	t := &v1.NamespaceTermination{
		OmittedResources: int32(max(0, len(resources)-maxResources)),
		Undiscovered:     f.undiscovered(),
		LastError:        errorText(f.finalizeErr),
	}
	for _, r := range resources[:min(len(resources), maxResources)] {
		t.Remaining = append(t.Remaining, r.remaining())
	}
	return t
}

// rank orders resources: those with an error first, then Pods.
func rank(r *resourceState) int {
	switch {
	case r.err != nil:
		return 0
	case isPods(r.Resource):
		return 1
	default:
		return 2
	}
}

func (r *resourceState) remaining() v1.RemainingResource {
	out := v1.RemainingResource{Group: r.Group, Resource: r.GroupVersionResource.Resource, LastError: errorText(r.err)}
	if r.read {
		out.Count = new(int64(len(r.items)))
	}
	items := slices.SortedFunc(maps.Values(r.items), func(a, b item) int {
		return cmp.Or(compareDeletions(a.deletion, b.deletion), strings.Compare(a.name, b.name))
	})
	for _, it := range items[:min(len(items), maxObjects)] {
		out.Objects = append(out.Objects, v1.RemainingObject{
			Name:                       it.name,
			Finalizers:                 slices.Clone(it.finalizers[:min(len(it.finalizers), maxFinalizers)]),
			DeletionTimestamp:          it.deletion,
			DeletionGracePeriodSeconds: it.grace,
		})
	}
	return out
}

// compareDeletions orders by time; objects without a time are last.
func compareDeletions(a, b *metav1.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return a.Compare(b.Time)
}

func (f *findings) undiscovered() []v1.UndiscoveredGroup {
	var undiscovered []v1.UndiscoveredGroup
	if groups, ok := discovery.GroupDiscoveryFailedErrorGroups(f.Failure); ok {
		for gv, err := range groups {
			undiscovered = append(undiscovered, v1.UndiscoveredGroup{GroupVersion: gv.String(), LastError: errorText(err)})
		}
	} else if f.Failure != nil {
		undiscovered = append(undiscovered, v1.UndiscoveredGroup{LastError: errorText(f.Failure)})
	}
	if f.ParseFailure != nil {
		undiscovered = append(undiscovered, v1.UndiscoveredGroup{LastError: errorText(f.ParseFailure)})
	}
	slices.SortFunc(undiscovered, func(a, b v1.UndiscoveredGroup) int {
		return cmp.Or(strings.Compare(a.GroupVersion, b.GroupVersion), strings.Compare(a.LastError, b.LastError))
	})
	return undiscovered[:min(len(undiscovered), maxUndiscovered)]
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return truncate.Text(err.Error(), maxError)
}

// setTermination updates status.termination and reports whether that changed it.
func setTermination(status *v1.NamespaceStatus, termination *v1.NamespaceTermination, moved time.Time) bool {
	old := status.Termination
	termination = termination.DeepCopy()
	termination.LastProgressTime = metav1.NewTime(moved).Rfc3339Copy()
	if old != nil {
		// The server keeps these up to date.
		termination.SpecFinalizers, termination.MetadataFinalizers = old.SpecFinalizers, old.MetadataFinalizers
	}
	status.Termination = termination
	return !equality.Semantic.DeepEqual(old, termination)
}

// mustWriteNow reports whether the old status claims that more has been deleted
// than the new one does. Such a status has to be replaced at once.
func mustWriteNow(old, now *v1.NamespaceStatus) bool {
	for _, c := range old.Conditions {
		i := slices.IndexFunc(now.Conditions, func(n v1.NamespaceCondition) bool { return n.Type == c.Type })
		if i >= 0 && c.Status == corev1.ConditionFalse && now.Conditions[i].Status != corev1.ConditionFalse {
			return true
		}
	}
	if old.Termination == nil {
		return false
	}
	for _, r := range now.Termination.Remaining {
		before := resourceIn(old.Termination, r.Group, r.Resource)
		switch {
		case before == nil && old.Termination.OmittedResources == 0,
			before != nil && before.Count != nil && (r.Count == nil || *r.Count > *before.Count):
			return true
		}
	}
	return false
}

// resourceIn returns the entry of a resource, or nil if there is none.
func resourceIn(t *v1.NamespaceTermination, group, resource string) *v1.RemainingResource {
	i := slices.IndexFunc(t.Remaining, func(r v1.RemainingResource) bool { return r.Group == group && r.Resource == resource })
	if i < 0 {
		return nil
	}
	return &t.Remaining[i]
}
