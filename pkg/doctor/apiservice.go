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
	// deploy is the cure for objects that are not there.
	deploy = "apply the manifests again, by kubectl apply -k, or helm upgrade"
)

// apiService is what counts of an APIService. The type itself is in a module
// that nothing else needs.
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

// available returns the condition, nil if the host has not said anything yet.
func (s *apiService) available() *metav1.Condition {
	return meta.FindStatusCondition(s.Status.Conditions, "Available")
}

func (x *examination) checkAPIService(ctx context.Context) Finding {
	a, err := x.host.get(ctx, "/apis/"+apiRegistrationGroup+"/v1/apiservices/"+apiServiceName, nil)
	if err != nil {
		return skipped("can't read it: %s", oneLine(err.Error()))
	}
	switch a.status {
	case http.StatusOK:
	case http.StatusNotFound:
		return fault(apiServiceName+" does not exist", deploy)
	default:
		return skipped("can't read it: %s", a)
	}
	var service apiService
	if err := json.Unmarshal(a.body, &service); err != nil {
		return skipped("can't read it: %s", err)
	}
	reference := service.Spec.Service
	switch {
	case reference == nil:
		return fault(apiServiceName+" refers to no Service: the host looks for the API in itself", deploy)
	case reference.Namespace != x.Namespace:
		return fault(fmt.Sprintf("%s refers to the Service %s, which is not in the namespace %s", apiServiceName, reference, x.Namespace),
			fmt.Sprintf("if Borough is deployed in %s, pass --namespace=%s; else correct spec.service of the APIService", reference.Namespace, reference.Namespace))
	}
	x.apiService = &service
	return ok("%s refers to the Service %s", apiServiceName, reference)
}

func (x *examination) checkAvailable(context.Context) Finding {
	condition := x.apiService.available()
	switch {
	case condition == nil:
		return fault("the host has not tried the APIService yet",
			"wait some seconds and ask again; if it stays so, see the log of kube-apiserver, and that caBundle is good")
	case condition.Status == metav1.ConditionTrue:
		return ok("the host reaches the server")
	}
	return fault(oneLine(condition.Reason+": "+condition.Message), cureUnavailable(*condition, *x.apiService.Spec.Service))
}

// cureUnavailable knows what kube-apiserver writes into the condition Available
// (package status/remote of k8s.io/kube-aggregator).
func cureUnavailable(condition metav1.Condition, service serviceReference) string {
	says := func(part string) bool { return strings.Contains(condition.Message, part) }
	kubectl := func(command string) string { return "kubectl " + command + " --namespace=" + service.Namespace }
	switch condition.Reason {
	case "ServiceNotFound":
		return fmt.Sprintf("create the Service %s; %s", service, deploy)
	case "ServicePortError":
		return fmt.Sprintf("let spec.service.port of the APIService be a port of the Service %s", service)
	case "EndpointsNotFound", "MissingEndpoints":
		return "no server is ready: " + kubectl("get pods") + " and their logs say why; the selector and the port's name of the Service must fit the Pods"
	case "ServiceAccessError", "EndpointsAccessError":
		return "see the log of kube-apiserver"
	}
	switch {
	case says("x509: certificate is valid for"), says("x509: certificate is not valid for any names"):
		return fmt.Sprintf("the serving certificate has to be for the name %s.%s.svc", service.Name, service.Namespace)
	case says("certificate has expired or is not yet valid"):
		return "renew the serving certificate, and see that the clocks agree"
	case says("x509:"):
		return "caBundle has to hold the certificate of the CA that signed the serving certificate; see the check caBundle"
	case refused(condition):
		return "see the check " + checkFrontProxy
	case says("bad status"):
		return "the log of the server says why it answers so; see the checks delegator binding and pods"
	case says("connection refused"):
		return "nothing listens there: the targetPort of the Service has to be --secure-port of the server"
	case says("timeout"), says("timed out"), says("deadline exceeded"), says("no route to host"):
		return "the host does not reach the Pods: let the control plane through firewalls and NetworkPolicies to --secure-port of the server"
	}
	return "the logs of kube-apiserver and of the server say more"
}

var refusal = regexp.MustCompile(`bad status from \S+: (401|403)\b`)

// refused says that the server did not take the host for whom it is. The host
// asks as one of system:masters, whom the server lets do everything.
func refused(condition metav1.Condition) bool {
	return condition.Status != metav1.ConditionTrue && refusal.MatchString(condition.Message)
}
