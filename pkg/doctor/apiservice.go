// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

const (
	apiRegistrationGroup = "apiregistration.k8s.io"
	apiServiceName       = "v1." + v1.GroupName
	// deploy is the cure for missing objects.
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
	a, err := x.raw.get(ctx, "/apis/"+apiRegistrationGroup+"/v1/apiservices/"+apiServiceName, nil)
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
	return fault(oneLine(condition.Reason+": "+condition.Message), cureUnavailable(*condition, *x.apiService.Spec.Service))
}

// cureUnavailable returns the cure for the reason and the message that the
// aggregator writes into the condition Available (package status/remote of
// k8s.io/kube-aggregator).
func cureUnavailable(condition metav1.Condition, service serviceReference) string {
	says := func(part string) bool { return strings.Contains(condition.Message, part) }
	kubectl := func(command string) string { return "kubectl " + command + " --namespace=" + service.Namespace }
	switch condition.Reason {
	case "ServiceNotFound":
		return fmt.Sprintf("create the Service %s; %s", service, deploy)
	case "ServicePortError":
		return fmt.Sprintf("set spec.service.port of the APIService to a port of the Service %s", service)
	case "EndpointsNotFound", "MissingEndpoints":
		return "no server is ready: check " + kubectl("get pods") + " and the logs of the Pods; the selector and the port name of the Service must match the Pods"
	case "ServiceAccessError", "EndpointsAccessError":
		return "check the log of kube-apiserver"
	}
	switch {
	case says("x509: certificate is valid for"), says("x509: certificate is not valid for any names"):
		return fmt.Sprintf("the serving certificate must be for the name %s.%s.svc", service.Name, service.Namespace)
	case says("certificate has expired or is not yet valid"):
		return "renew the serving certificate, and see the check clocks"
	case says("x509:"):
		return "caBundle must contain the certificate of the CA that signed the serving certificate; see the check caBundle"
	case refused(condition):
		return "see the check " + checkFrontProxy
	case says("bad status"):
		return "check the log of the server; see the checks delegator binding and pods"
	case says("connection refused"):
		return "no process listens on the port: the targetPort of the Service must be --secure-port of the server"
	case says("timeout"), says("timed out"), says("deadline exceeded"), says("no route to host"):
		return "kube-apiserver cannot reach the Pods: allow the control plane in firewalls and NetworkPolicies to connect to --secure-port of the server"
	}
	return "check the logs of kube-apiserver and of the server"
}

var refusal = regexp.MustCompile(`bad status from \S+: (401|403)\b`)

// refused reports whether the server did not authenticate the aggregator. The
// aggregator sends requests as a member of system:masters, which the server allows
// everything, so both 401 and 403 mean this.
func refused(condition metav1.Condition) bool {
	return condition.Status != metav1.ConditionTrue && refusal.MatchString(condition.Message)
}
