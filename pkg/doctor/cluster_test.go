// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/delegation"
)

const (
	serverUser        = "system:serviceaccount:borough-system:borough-apiserver"
	listPath          = "/apis/tenancy.borough.io/v1/namespaces"
	deploymentsPath   = "/apis/apps/v1/namespaces/borough-system/deployments"
	podsPath          = "/api/v1/namespaces/borough-system/pods"
	readyzPath        = podsPath + "/https:server-0:6443/proxy/readyz"
	healthPath        = podsPath + "/http:server-0:2381/proxy/health"
	configPath        = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
	secretPath        = "/api/v1/namespaces/borough-system/secrets/borough-apiserver-tls"
	namespacesPath    = "/api/v1/namespaces"
	controllerPath    = "/api/v1/namespaces/kube-system/serviceaccounts/namespace-controller"
	accountPath       = "/api/v1/namespaces/borough-system/serviceaccounts/borough-apiserver"
	leasePath         = "/apis/coordination.k8s.io/v1/namespaces/borough-system/leases/borough-controller-manager"
	etcdPath          = "/apis/apps/v1/namespaces/borough-system/statefulsets/borough-etcd"
	nodePath          = "/api/v1/nodes/node1"
	admissionPath     = "/apis/admissionregistration.k8s.io/v1"
	flowControlPath   = "/apis/flowcontrol.apiserver.k8s.io/v1"
	levelsPath        = flowControlPath + "/prioritylevelconfigurations"
	subjectReviewPath = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	selfReviewPath    = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
)

// fakeCluster is a kube-apiserver with a deployment of Borough without faults. Tests
// use it for faults that a real cluster cannot have.
type fakeCluster struct {
	answers map[string]fakeAnswer // by path, with the method for PATCH
	clock   time.Duration         // ahead of ours
	// denied has the rights that the service account lacks: "verb resource".
	denied map[string]bool

	leads bool // the holder of the Lease renews it

	apiService *apiService
	deployment *appsv1.Deployment
}

type fakeAnswer struct {
	status int
	body   any           // a string is sent unchanged, other values as JSON
	clock  time.Duration // ahead of that of kube-apiserver
}

func newFakeCluster(t *testing.T) *fakeCluster {
	ca := newTestCA(t, "ca", time.Now())
	certPEM := ca.issue(t, "borough-apiserver.borough-system.svc", time.Now())

	service := &apiService{}
	service.Metadata.Name = apiServiceName
	service.Spec.Service = &serviceReference{"borough-system", "borough-apiserver", 443}
	service.Spec.CABundle = ca.pem()
	service.Status.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue, Reason: "Passed"}}

	labels := map[string]string{"app": "borough"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "server"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Spec = corev1.PodSpec{
		ServiceAccountName: "borough-apiserver",
		Containers: []corev1.Container{{
			Name:         "borough-apiserver",
			Args:         []string{"--tls-cert-file=/tls/tls.crt"},
			VolumeMounts: []corev1.VolumeMount{{Name: "tls", MountPath: "/tls"}},
		}},
		Volumes: []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "borough-apiserver-tls"}}}},
	}
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "server-0", Namespace: "borough-system"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: 6443}}}}},
		Status:     corev1.PodStatus{PodIP: "192.0.2.1"},
	}

	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: defaultLeaseName, Namespace: "borough-system"}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new("controller-0"), new(int32(15))
	self := &authenticationv1.SelfSubjectReview{}
	self.Status.UserInfo.Username = "alice"
	return &fakeCluster{
		apiService: service,
		deployment: deployment,
		denied:     map[string]bool{},
		leads:      true,
		answers: map[string]fakeAnswer{
			"/version":      {body: version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"}},
			selfReviewPath:  {body: self},
			admissionPath:   {body: resources("validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings")},
			flowControlPath: {body: resources("flowschemas", "prioritylevelconfigurations")},
			levelsPath:      {body: flowcontrolv1.PriorityLevelConfigurationList{}},

			"PATCH " + apiServicePath:                            failure(http.StatusUnprocessableEntity, "a ValidatingAdmissionPolicy denied the request"),
			admissionPath + "/validatingadmissionpolicies":       {body: admissionv1.ValidatingAdmissionPolicyList{}},
			admissionPath + "/validatingadmissionpolicybindings": {body: admissionv1.ValidatingAdmissionPolicyBindingList{}},
			leasePath:      {body: lease},
			accountPath:    {body: corev1.ServiceAccount{}},
			controllerPath: {body: corev1.ServiceAccount{}},
			namespacesPath: {body: corev1.NamespaceList{Items: []corev1.Namespace{{}}}},
			secretPath:     {body: corev1.Secret{Data: map[string][]byte{"tls.crt": certPEM}}},
			configPath: {body: corev1.ConfigMap{Data: map[string]string{
				delegation.FrontProxyCAKey:       string(ca.pem()),
				"requestheader-username-headers": `["X-Remote-User"]`,
				"requestheader-group-headers":    `["X-Remote-Group"]`,
			}}},
			groupPath:  {body: resources("namespaces")},
			listPath:   {body: "{}"},
			podsPath:   {body: corev1.PodList{Items: []corev1.Pod{pod}}},
			readyzPath: {body: "[+]etcd ok\nreadyz check passed\n"},

			versionPath: {body: version.Info{GitVersion: "v0.1.0"}},
		},
	}
}

func resources(names ...string) metav1.APIResourceList {
	list := metav1.APIResourceList{}
	for _, name := range names {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return list
}

func failure(code int, message string) fakeAnswer {
	return fakeAnswer{status: code, body: metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Message: message, Code: int32(code),
		Reason: map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound}[code],
	}}
}

// pod returns the Pod of the server, to change it.
func (c *fakeCluster) pod() *corev1.Pod { return &c.answers[podsPath].body.(corev1.PodList).Items[0] }

// node adds the node node1, which is down for a minute, or ready.
func (c *fakeCluster) node(down bool) {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Minute))}
	if down {
		ready.Status = corev1.ConditionUnknown
	}
	c.answers[nodePath] = fakeAnswer{body: corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{ready}}}}
}

// lease returns the Lease of the controllers, to change it.
func (c *fakeCluster) lease() *coordinationv1.Lease {
	return c.answers[leasePath].body.(*coordinationv1.Lease)
}

// unavailable sets the condition Available of the APIService to False.
func (c *fakeCluster) unavailable(reason, message string) {
	c.apiService.Status.Conditions[0] = metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func (c *fakeCluster) args(args ...string) {
	container := &c.deployment.Spec.Template.Spec.Containers[0]
	container.Args = append(container.Args, args...)
}

// controller adds the Deployment of the controller. All Pods of the namespace are its Pods.
func (c *fakeCluster) controller(args ...string) {
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "controller"}}
	d.Spec.Selector = &metav1.LabelSelector{}
	d.Spec.Template.Spec = corev1.PodSpec{
		ServiceAccountName: "borough-controller-manager",
		Containers:         []corev1.Container{{Name: "borough-controller-manager", Args: args}},
	}
	c.answers[deploymentsPath] = fakeAnswer{body: appsv1.DeploymentList{Items: []appsv1.Deployment{*c.deployment, d}}}
}

func (c *fakeCluster) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a, found := c.answers[req.URL.Path]
	if req.Method == http.MethodPatch {
		a, found = c.answers["PATCH "+req.URL.Path]
		if dryRun := req.URL.Query().Get("dryRun"); dryRun != "All" || req.Header.Get("Impersonate-User") != serverUser {
			a, found = fakeAnswer{body: "doctor must not change anything"}, true
		}
	}
	switch {
	case req.URL.Path == leasePath && found && c.leads:
		lease := c.lease().DeepCopy()
		lease.Spec.RenewTime = new(metav1.NowMicro())
		a.body = lease
	case found:
	case req.URL.Path == subjectReviewPath:
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			a = failure(http.StatusBadRequest, err.Error())
			break
		}
		asked := review.Spec.ResourceAttributes
		review.Status.Allowed = strings.HasPrefix(review.Spec.User, "system:serviceaccount:borough-system:borough-") && !c.denied[asked.Verb+" "+asked.Resource]
		a.body = review
	case req.URL.Path == apiServicePath && c.apiService != nil:
		a.body = c.apiService
	case req.URL.Path == deploymentsPath:
		a.body = appsv1.DeploymentList{Items: []appsv1.Deployment{*c.deployment}}
	default:
		a = failure(http.StatusNotFound, req.URL.Path+" does not exist")
	}
	w.Header().Set("Date", time.Now().Add(c.clock+a.clock).UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Type", "application/json")
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	if text, isText := a.body.(string); isText {
		fmt.Fprint(w, text)
		return
	}
	_ = json.NewEncoder(w).Encode(a.body) // fails only if the client has disconnected
}

func (c *fakeCluster) examine(t *testing.T) map[string]Finding { return examine(t, c, 0) }

func examine(t *testing.T, cluster http.Handler, recheck time.Duration) map[string]Finding {
	t.Helper()
	server := httptest.NewServer(cluster)
	defer server.Close()
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	findings, err := Examine(t.Context(), config, Options{Namespace: "borough-system", ServiceAccount: "borough-apiserver", ControllerServiceAccount: "borough-controller-manager", Recheck: recheck})
	if err != nil {
		t.Fatal(err)
	}
	byCheck := map[string]Finding{}
	for _, f := range findings {
		if (f.Status == Fault || f.Status == Warning) != (f.Fix != "") || f.Message == "" || strings.Contains(f.Message+f.Fix, "\n") {
			t.Errorf("%+v: want a message of one line, and a fix only for a fault or a warning", f)
		}
		byCheck[f.Check] = f
	}
	return byCheck
}
