// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacepurge

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

const (
	// maxObjects is the number of held objects that the status names, by
	// resource.
	maxObjects = 100
	// maxFinalizers is the number of finalizers that it names, by object.
	maxFinalizers = 5
	// annotationPrefix is the prefix of the annotations of the audit event.
	annotationPrefix = "namespacepurges." + tenancy.GroupName + "/"
)

// report collects the result of a purge.
type report struct {
	namespaceUID  types.UID
	force, dryRun bool
	finalize      bool // as requested
	finalized     bool
	results       []*result
}

func newReport(spec tenancy.NamespacePurgeSpec, dryRun bool) *report {
	return &report{namespaceUID: spec.NamespaceUID, force: spec.Force, finalize: spec.Finalize, dryRun: dryRun}
}

// result returns the result for a resource. Objects that an earlier pass has found held
// are no longer in it: the next pass finds them again.
func (r *report) result(resource schema.GroupResource) *result {
	if found := r.find(resource); found != nil {
		found.purged.Held, found.purged.Objects = 0, nil
		return found
	}
	added := &result{purged: tenancy.PurgedResource{Group: resource.Group, Resource: resource.Resource}}
	r.results = append(r.results, added)
	return added
}

// skip removes a resource from the status. An earlier pass may have purged it, by a cache
// that does not show whether objects are left.
func (r *report) skip(resource schema.GroupResource) {
	if found := r.find(resource); found != nil {
		found.skipped = true
	}
}

// find returns the result for a resource, or nil if there is none yet.
func (r *report) find(resource schema.GroupResource) *result {
	i := slices.IndexFunc(r.results, func(result *result) bool {
		return result.purged.Group == resource.Group && result.purged.Resource == resource.Resource
	})
	if i < 0 {
		return nil
	}
	return r.results[i]
}

// result collects the result for one resource.
type result struct {
	skipped bool // not in the status

	mu     sync.Mutex // of the workers that delete objects
	purged tenancy.PurgedResource
}

// removed counts an object that was removed.
func (r *result) removed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.purged.Removed++
}

// held counts an object that has a finalizer or a grace period.
func (r *result) held(obj metav1.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.purged.Held++
	i, _ := slices.BinarySearchFunc(r.purged.Objects, obj.GetName(), func(o tenancy.RemainingObject, name string) int { return strings.Compare(o.Name, name) })
	if i >= maxObjects {
		return
	}
	finalizers := obj.GetFinalizers()
	objects := slices.Insert(r.purged.Objects, i, tenancy.RemainingObject{
		Name:                       obj.GetName(),
		Finalizers:                 finalizers[:min(len(finalizers), maxFinalizers)],
		DeletionTimestamp:          obj.GetDeletionTimestamp(),
		DeletionGracePeriodSeconds: obj.GetDeletionGracePeriodSeconds(),
	})
	r.purged.Objects = objects[:min(len(objects), maxObjects)]
}

// status returns the results for the status of the NamespacePurge.
func (r *report) status() (status []tenancy.PurgedResource) {
	for _, result := range r.results {
		if !result.skipped {
			status = append(status, result.purged)
		}
	}
	return status
}

// total returns the number of objects that were removed, and that were held.
func (r *report) total() (removed, held int64) {
	for _, result := range r.results {
		removed += result.purged.Removed
		held += result.purged.Held
	}
	return removed, held
}

// record annotates the audit event with the result, and logs that of a forced
// purge. It is called for a purge that failed halfway, too.
func (r *report) record(ctx context.Context) {
	var removed, held []string
	for _, result := range r.results {
		purged := &result.purged
		removed = append(removed, purged.Resource+"="+strconv.FormatInt(purged.Removed, 10))
		held = append(held, purged.Resource+"="+strconv.FormatInt(purged.Held, 10))
	}
	audit.AddAuditAnnotations(ctx,
		annotationPrefix+"namespace-uid", string(r.namespaceUID),
		annotationPrefix+"force", strconv.FormatBool(r.force),
		annotationPrefix+"removed", strings.Join(removed, ","),
		annotationPrefix+"held", strings.Join(held, ","),
		annotationPrefix+"finalized", strconv.FormatBool(r.finalized),
		annotationPrefix+"dry-run", strconv.FormatBool(r.dryRun))
	if total, _ := r.total(); r.force && total > 0 && !r.dryRun {
		var user string
		if info, ok := request.UserFrom(ctx); ok {
			user = info.GetName()
		}
		klog.FromContext(ctx).Info("Forced the purge of a namespace", "namespace", request.NamespaceValue(ctx),
			"uid", r.namespaceUID, "user", user, "removed", removed, "held", held)
	}
}

// warn adds a warning to the response about held objects that were removed,
// since kubectl may print nothing else about them.
func (r *report) warn(ctx context.Context) {
	removed, held := r.total()
	if !r.force || held == 0 || ctx.Err() != nil { // after a timeout, the response is already being written
		return
	}
	verb := "removed"
	if r.dryRun {
		verb = "would remove"
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("%s %d objects, %d of them held by finalizers or a grace period: what these protect may be left behind", verb, removed, held))
}
