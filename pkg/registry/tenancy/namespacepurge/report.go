// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacepurge

import (
	"cmp"
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
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

const (
	// maxObjects is how many objects of a resource the answer names.
	maxObjects = 100
	// maxFinalizers is how many finalizers of an object it names.
	maxFinalizers = 5
	// annotationPrefix is that of the annotations of the audit event.
	annotationPrefix = "namespacepurges." + tenancy.GroupName + "/"
)

// report is what a purge has done.
type report struct {
	namespaceUID types.UID
	dryRun       bool

	mu        sync.Mutex
	resources []*tenancy.PurgedResource
}

func newReport(namespaceUID types.UID, dryRun bool) *report {
	return &report{namespaceUID: namespaceUID, dryRun: dryRun}
}

// of starts the part about the next resource and returns what takes down each of
// its objects.
func (r *report) of(resource schema.GroupResource) func(obj metav1.Object, held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	purged := &tenancy.PurgedResource{Group: resource.Group, Resource: resource.Resource}
	r.resources = append(r.resources, purged)
	return func(obj metav1.Object, held bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		purged.Count++
		if held {
			purged.Held++
			purged.Objects = append(purged.Objects, tenancy.RemainingObject{
				Name:                       obj.GetName(),
				Finalizers:                 obj.GetFinalizers()[:min(len(obj.GetFinalizers()), maxFinalizers)],
				DeletionTimestamp:          obj.GetDeletionTimestamp(),
				DeletionGracePeriodSeconds: obj.GetDeletionGracePeriodSeconds(),
			})
		}
	}
}

// purged returns what there was, for the answer.
func (r *report) purged() []tenancy.PurgedResource {
	r.mu.Lock()
	defer r.mu.Unlock()
	var purged []tenancy.PurgedResource
	for _, resource := range r.resources {
		if resource.Count == 0 {
			continue
		}
		slices.SortFunc(resource.Objects, func(a, b tenancy.RemainingObject) int { return cmp.Compare(a.Name, b.Name) })
		resource.Objects = resource.Objects[:min(len(resource.Objects), maxObjects)]
		purged = append(purged, *resource)
	}
	return purged
}

// tell puts what was done into the audit event and the log. It does so also
// where the purge failed halfway.
func (r *report) tell(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var counts, holds []string
	var total int64
	for _, resource := range r.resources {
		counts = append(counts, resource.Resource+"="+strconv.FormatInt(resource.Count, 10))
		holds = append(holds, resource.Resource+"="+strconv.FormatInt(resource.Held, 10))
		total += resource.Count
	}
	purged, held := strings.Join(counts, ","), strings.Join(holds, ",")
	audit.AddAuditAnnotations(ctx,
		annotationPrefix+"namespace-uid", string(r.namespaceUID),
		annotationPrefix+"purged", purged,
		annotationPrefix+"held", held,
		annotationPrefix+"dry-run", strconv.FormatBool(r.dryRun))
	if total > 0 && !r.dryRun {
		by, _ := request.UserFrom(ctx)
		klog.FromContext(ctx).Info("Purged a namespace without waiting for what held its content",
			"namespace", request.NamespaceValue(ctx), "uid", r.namespaceUID, "user", userName(by), "purged", purged, "held", held)
	}
}

// warn tells the client, whose kubectl may print nothing else, that something was
// held.
func (r *report) warn(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var total, held int64
	for _, resource := range r.resources {
		total += resource.Count
		held += resource.Held
	}
	if held == 0 || ctx.Err() != nil { // then the answer is already being written
		return
	}
	done := "removed"
	if r.dryRun {
		done = "would remove"
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("%s %d objects, %d of them held by finalizers or a grace period: what these stood for may be left behind", done, total, held))
}

func userName(info user.Info) string {
	if info == nil {
		return ""
	}
	return info.GetName()
}
