// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/truncate"
)

// rawClient sends requests to kube-apiserver and returns what typed clients do not:
// status codes, headers and times.
type rawClient struct {
	base *url.URL
	http *http.Client
}

func newRawClient(config *rest.Config) (*rawClient, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("parse the address of the cluster: %w", err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create a client for the cluster: %w", err)
	}
	return &rawClient{base, client}, nil
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
	clock  clock
}

// maxAnswer bounds the body of an answer. It is more than the checks need.
const maxAnswer = 16 << 20

func (r *rawClient) get(ctx context.Context, path string, query url.Values) (*answer, error) {
	return r.send(ctx, http.MethodGet, path, query, http.Header{}, "")
}

func (r *rawClient) send(ctx context.Context, method, path string, query url.Values, header http.Header, content string) (*answer, error) {
	u := r.base.JoinPath(path)
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, u.String(), strings.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header = header
	request.Header.Set("Accept", "application/json, */*")
	sent := time.Now()
	response, err := r.http.Do(request)
	if err != nil {
		return nil, err
	}
	received := time.Now()
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the response to %s: %w", path, err)
	}
	return &answer{response.StatusCode, response.Header, body, readClock(response.Header.Get("Date"), sent, received)}, nil
}

// sendAs sends a request as one of our service accounts, which the user has to be
// allowed to impersonate. If the request cannot be sent, it returns a finding instead
// of the answer. kube-apiserver adds the groups of a service account.
func (x *examination) sendAs(ctx context.Context, serviceAccount, method, path string, query url.Values, contentType, content string) (*answer, *Finding) {
	user := serviceaccount.MakeUsername(x.Namespace, serviceAccount)
	a, err := x.raw.send(ctx, method, path, query, http.Header{"Impersonate-User": {user}, "Content-Type": {contentType}}, content)
	var finding Finding
	switch {
	case err != nil:
		finding = skipped("cannot send a request as %s: %s", user, oneLine(err.Error()))
	case a.status == http.StatusForbidden && userIn(a) == x.user:
		finding = skipped("%s cannot impersonate %s", x.who(), user)
	default:
		return a, nil
	}
	return nil, &finding
}

// String returns the status code and the message, if the body is a Status, or else
// the body.
func (a *answer) String() string {
	var status metav1.Status
	text := string(a.body)
	if json.Unmarshal(a.body, &status) == nil && status.Message != "" {
		text = status.Message
	}
	return fmt.Sprintf("%d: %s", a.status, oneLine(text))
}

// isStatus reports whether the body is a Status, as errors of API servers are.
func (a *answer) isStatus() bool {
	var status metav1.Status
	return json.Unmarshal(a.body, &status) == nil && status.Kind == "Status"
}

// oneLine bounds the length of a text, so that it fits a message.
func oneLine(text string) string { return truncate.Line(text, 400) }

func (x *examination) checkCluster(ctx context.Context) Finding {
	const fix = "check the kubeconfig and its context, and that this machine can reach kube-apiserver"
	a, err := x.raw.get(ctx, "/version", nil)
	if err != nil {
		return fault(oneLine(err.Error()), fix)
	}
	var info version.Info
	switch {
	case a.status == http.StatusUnauthorized:
		return fault("kube-apiserver rejects the credentials: "+a.String(), "log in again, or use a kubeconfig with valid credentials")
	case a.status != http.StatusOK || json.Unmarshal(a.body, &info) != nil || info.GitVersion == "":
		return fault(fmt.Sprintf("%s is not a Kubernetes API server: %s", x.raw.base, a), fix)
	}
	if strings.Contains(info.GitVersion, "+borough-") {
		return fault(fmt.Sprintf("%s is a standalone server of Borough, not a cluster", x.raw.base),
			"use the kubeconfig of the cluster in which Borough is deployed; a standalone server reports its state at /readyz?verbose")
	}
	x.version = info.GitVersion
	if emulated := info.EmulationMajor + "." + info.EmulationMinor; emulated != "." && emulated != info.Major+"."+info.Minor {
		x.version += ", emulating " + emulated + ","
	}
	x.clusterClock = a.clock

	who := ""
	if review, err := x.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}); err == nil {
		x.user = review.Status.UserInfo.Username
		who = ", authenticated as " + x.user
	}
	return ok("Kubernetes %s at %s%s", x.version, x.raw.base, who)
}

// requirement is an API of the cluster that the server watches unless a flag turns
// it off. Without the API the server never becomes ready, or each write waits and
// fails.
type requirement struct {
	what        string // name of the feature
	group       string // in version v1
	resources   []string
	since       string // first minor version of Kubernetes that serves it
	flag, value string // turn it off
	// more are the rights that the server needs in addition to watching.
	more []right
}

var requirements = []requirement{
	{"priority and fairness", "flowcontrol.apiserver.k8s.io", []string{"flowschemas", "prioritylevelconfigurations"}, "1.29",
		"enable-priority-and-fairness", "false",
		[]right{{verbs: []string{"patch"}, group: "flowcontrol.apiserver.k8s.io", resources: []string{"flowschemas/status"}}}},
	{"ValidatingAdmissionPolicy", "admissionregistration.k8s.io", []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}, "1.30",
		flagDisablePlugins, "ValidatingAdmissionPolicy", nil},
	{"MutatingAdmissionPolicy", "admissionregistration.k8s.io", []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}, "1.36",
		flagDisablePlugins, "MutatingAdmissionPolicy", nil},
}

func (r requirement) groupVersion() string { return r.group + "/v1" }

const flagDisablePlugins = "disable-admission-plugins"

func (r requirement) off(d *deployment) bool {
	if r.flag == flagDisablePlugins {
		return slices.Contains(d.flag(r.flag), r.value)
	}
	return !d.boolFlag(r.flag, true)
}

func (x *examination) checkVersion(ctx context.Context) Finding {
	served := map[string][]string{} // resources by group version
	var missing []requirement
	var without []string
	for _, r := range requirements {
		if r.off(x.deployment) {
			without = append(without, r.what)
			continue
		}
		gv := r.groupVersion()
		if _, asked := served[gv]; !asked {
			resources, err := x.served(ctx, gv)
			if err != nil {
				return skipped("cannot discover %s: %s", gv, oneLine(err.Error()))
			}
			served[gv] = resources
		}
		if slices.ContainsFunc(r.resources, func(resource string) bool { return !slices.Contains(served[gv], resource) }) {
			missing = append(missing, r)
		}
	}
	switch {
	case len(missing) > 0:
		return tooOld(x.version, missing)
	case len(without) > 0:
		return ok("Kubernetes %s serves what the server watches; turned off: %s", x.version, strings.Join(without, ", "))
	}
	return ok("Kubernetes %s serves what the server watches", x.version)
}

// served returns the resources of a group version, or none if it does not exist.
func (x *examination) served(ctx context.Context, groupVersion string) ([]string, error) {
	list, err := x.client.Discovery().ServerResourcesForGroupVersionWithContext(ctx, groupVersion)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, resource := range list.APIResources {
		names = append(names, resource.Name)
	}
	return names, nil
}

func tooOld(version string, missing []requirement) Finding {
	var lacks, plugins, flags, whats []string
	for _, r := range missing {
		lacks = append(lacks, fmt.Sprintf("%s of %s (served since Kubernetes %s)", strings.Join(r.resources, " and "), r.groupVersion(), r.since))
		whats = append(whats, r.what)
		if r.flag == flagDisablePlugins {
			plugins = append(plugins, r.value)
		} else {
			flags = append(flags, "--"+r.flag+"="+r.value)
		}
	}
	if len(plugins) > 0 {
		flags = append(flags, "--"+flagDisablePlugins+"="+strings.Join(plugins, ","))
	}
	// The table is sorted by version.
	return fault(fmt.Sprintf("the cluster is too old: Kubernetes %s does not serve %s", version, strings.Join(lacks, "; ")),
		fmt.Sprintf("upgrade the cluster to Kubernetes %s, or add %s to the arguments of borough-apiserver and do without %s",
			missing[len(missing)-1].since, strings.Join(flags, " "), strings.Join(whats, ", ")))
}
