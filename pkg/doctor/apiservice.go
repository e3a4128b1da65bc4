// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

const (
	apiRegistrationGroup = "apiregistration.k8s.io"
	apiServiceName       = "v1." + v1.GroupName
	apiServicePath       = "/apis/" + apiRegistrationGroup + "/v1/apiservices/" + apiServiceName
	// deploy is the fix for missing objects.
	deploy = "apply the manifests again with kubectl apply -k or helm upgrade"
)

// apiService has the fields of an APIService that the checks read. The type itself
// is in a module that nothing else needs.
type apiService struct {
	Metadata metav1.ObjectMeta
	Spec     struct {
		Service               *serviceReference
		CABundle              []byte
		InsecureSkipTLSVerify bool
		VersionPriority       int
	}
	Status struct {
		Conditions []metav1.Condition
	}
}

type serviceReference struct {
	Namespace, Name string
	Port            int
}

func (r serviceReference) String() string { return r.Namespace + "/" + r.Name }

// available returns the condition Available, or nil if the aggregator has not set
// it yet.
func (s *apiService) available() *metav1.Condition {
	return meta.FindStatusCondition(s.Status.Conditions, "Available")
}

func (x *examination) checkAPIService(ctx context.Context) Finding {
	a, err := x.raw.get(ctx, apiServicePath, nil)
	if err != nil {
		return skipped("cannot read it: %s", oneLine(err.Error()))
	}
	switch a.status {
	case http.StatusOK:
	case http.StatusNotFound:
		return fault(apiServiceName+" does not exist", deploy)
	default:
		return skipped("cannot read it: %s", a)
	}
	var service apiService
	if err := json.Unmarshal(a.body, &service); err != nil {
		return skipped("cannot read it: %s", err)
	}
	reference := service.Spec.Service
	switch {
	case reference == nil:
		return fault(apiServiceName+" has no spec.service: kube-apiserver looks for the API in itself", deploy)
	case reference.Namespace != x.Namespace:
		return fault(fmt.Sprintf("%s refers to the Service %s, which is not in the namespace %s", apiServiceName, reference, x.Namespace),
			fmt.Sprintf("if Borough is deployed in %s, pass --namespace=%s; otherwise, correct spec.service of the APIService", reference.Namespace, reference.Namespace))
	}
	x.apiService = &service
	return ok("%s refers to the Service %s", apiServiceName, reference)
}

func (x *examination) checkAvailable(context.Context) Finding {
	condition := x.apiService.available()
	switch {
	case condition == nil:
		return fault("the aggregator has not checked the APIService yet",
			"run doctor again in a few seconds; if the fault remains, check the log of kube-apiserver and caBundle")
	case condition.Status == metav1.ConditionTrue:
		return ok("the aggregator reaches the server")
	}
	return fault(oneLine(condition.Reason+": "+condition.Message), fixUnavailable(*condition, *x.apiService.Spec.Service))
}

// fixUnavailable returns the fix for a condition Available that is not true.
func fixUnavailable(condition metav1.Condition, service serviceReference) string {
	kubectl := func(command string) string { return "kubectl " + command + " --namespace=" + service.Namespace }
	switch condition.Reason {
	case reasonServiceNotFound:
		return fmt.Sprintf("create the Service %s; %s", service, deploy)
	case reasonServicePortError:
		return fmt.Sprintf("set spec.service.port of the APIService to a port of the Service %s", service)
	case reasonEndpointsNotFound, reasonMissingEndpoints:
		return "no server is ready: check " + kubectl("get pods") + " and the logs of the Pods; the selector and the port name of the Service must match the Pods"
	case reasonServiceAccessError, reasonEndpointsAccessError:
		return "check the log of kube-apiserver"
	}
	if failure := failureOf(condition); failure != nil {
		return strings.ReplaceAll(failure.fix, "SERVICE", service.Name+"."+service.Namespace+".svc")
	}
	return "check the logs of kube-apiserver and of the server"
}
