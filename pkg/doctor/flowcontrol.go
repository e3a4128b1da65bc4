// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// levelsOfTenants are the priority levels of kube-apiserver for requests that no
// component of the cluster sends.
var levelsOfTenants = []string{"workload-low", "global-default", "catch-all"}

// checkFlowControl finds the priority level of each kind of request that the server
// and the controller send to kube-apiserver. It sends one of each as their service
// account, and reads the level in the response. Those with an empty body create
// nothing. kube-apiserver determines the level before it authorizes a request.
func (x *examination) checkFlowControl(ctx context.Context) Finding {
	levels, err := x.client.FlowcontrolV1().PriorityLevelConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return skipped("cannot list PriorityLevelConfigurations: %s", oneLine(err.Error()))
	}
	names := map[string]string{} // by UID
	for _, level := range levels.Items {
		names[string(level.UID)] = level.Name
	}
	leaseNamespace, leaseName := x.lease()
	var shared []string
	for _, r := range []struct{ what, serviceAccount, method, path string }{
		{"TokenReviews", x.ServiceAccount, http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews"},
		{"SubjectAccessReviews", x.ServiceAccount, http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews"},
		{"the Lease", x.ControllerServiceAccount, http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/" + leaseNamespace + "/leases/" + leaseName},
		{"requests of the controller", x.ControllerServiceAccount, http.MethodGet, groupPath + "/namespaces/default"},
	} {
		a, skip := x.sendAs(ctx, r.serviceAccount, r.method, r.path, nil, runtime.ContentTypeJSON, "")
		if skip != nil {
			return *skip
		}
		uid := a.header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)
		if uid == "" {
			return ok("priority and fairness is not enabled in kube-apiserver")
		}
		if slices.Contains(levelsOfTenants, names[uid]) {
			shared = append(shared, fmt.Sprintf("%s (%s)", r.what, names[uid]))
		}
	}
	if len(shared) > 0 {
		return fault("requests of tenants can delay those of Borough, which have the same priority level of kube-apiserver: "+strings.Join(shared, ", "),
			"the FlowSchemas are missing: "+deploy)
	}
	return ok("requests of Borough to kube-apiserver have other priority levels than those of tenants")
}
