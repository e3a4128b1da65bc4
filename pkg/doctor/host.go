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
	"k8s.io/client-go/rest"
)

// host is the API server of the host cluster, asked for what typed clients do
// not show: status codes, headers and times.
type host struct {
	base *url.URL
	http *http.Client
}

func newHost(config *rest.Config) (*host, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the address of the host cluster: %w", err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the host cluster: %w", err)
	}
	return &host{base, client}, nil
}

// answer is whatever came back.
type answer struct {
	status int
	body   []byte
	clock  clock
}

// maxAnswer is more than anything that is asked for.
const maxAnswer = 16 << 20

func (h *host) get(ctx context.Context, path string, query url.Values) (*answer, error) {
	u := h.base.JoinPath(path)
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json, */*")
	sent := time.Now()
	response, err := h.http.Do(request)
	if err != nil {
		return nil, err
	}
	received := time.Now()
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", path, err)
	}
	return &answer{response.StatusCode, body, readClock(response.Header.Get("Date"), sent, received)}, nil
}

// String is the answer as an error has it: its message if it is a Status, else
// its text.
func (a *answer) String() string {
	var status metav1.Status
	text := string(a.body)
	if json.Unmarshal(a.body, &status) == nil && status.Message != "" {
		text = status.Message
	}
	return fmt.Sprintf("%d: %s", a.status, oneLine(text))
}

// oneLine makes text of unknown size fit for a message.
func oneLine(text string) string {
	const most = 400
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

func (x *examination) checkHost(ctx context.Context) Finding {
	const cure = "check the kubeconfig and its context, and that this machine reaches the API server of the host cluster"
	a, err := x.host.get(ctx, "/version", nil)
	if err != nil {
		return fault(oneLine(err.Error()), cure)
	}
	var info version.Info
	switch {
	case a.status == http.StatusUnauthorized:
		return fault("the host refuses the credentials: "+a.String(), "log in again, or use a kubeconfig with credentials that are still good")
	case a.status != http.StatusOK || json.Unmarshal(a.body, &info) != nil || info.GitVersion == "":
		return fault(fmt.Sprintf("%s does not answer as an API server: %s", x.host.base, a), cure)
	}
	x.hostVersion = info.GitVersion
	if emulated := info.EmulationMajor + "." + info.EmulationMinor; emulated != "." && emulated != info.Major+"."+info.Minor {
		x.hostVersion += ", emulating " + emulated + ","
	}
	x.hostClock = a.clock

	who := ""
	if review, err := x.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}); err == nil {
		x.user = review.Status.UserInfo.Username
		who = ", asked as " + x.user
	}
	return ok("Kubernetes %s at %s%s", x.hostVersion, x.host.base, who)
}

// requirement is an API of the host that the server watches as long as a flag
// does not turn that off. Without the API the server is never ready, or each
// write waits and fails.
type requirement struct {
	what         string // in the sense of "no WHAT"
	groupVersion string
	resources    []string
	since        string // the minor version of Kubernetes that serves it at first
	flag, value  string // turn it off
}

var requirements = []requirement{
	{"priority and fairness", "flowcontrol.apiserver.k8s.io/v1", []string{"flowschemas", "prioritylevelconfigurations"}, "1.29",
		"enable-priority-and-fairness", "false"},
	{"ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1", []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}, "1.30",
		flagDisablePlugins, "ValidatingAdmissionPolicy"},
	{"MutatingAdmissionPolicy", "admissionregistration.k8s.io/v1", []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}, "1.36",
		flagDisablePlugins, "MutatingAdmissionPolicy"},
}

const flagDisablePlugins = "disable-admission-plugins"

func (r requirement) off(d *deployment) bool {
	return slices.Contains(d.flag(r.flag), r.value)
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
		if _, asked := served[r.groupVersion]; !asked {
			resources, err := x.served(ctx, r.groupVersion)
			if err != nil {
				return skipped("can't discover %s: %s", r.groupVersion, oneLine(err.Error()))
			}
			served[r.groupVersion] = resources
		}
		for _, resource := range r.resources {
			if !slices.Contains(served[r.groupVersion], resource) {
				missing = append(missing, r)
				break
			}
		}
	}
	switch {
	case len(missing) > 0:
		return tooOld(x.hostVersion, missing)
	case len(without) > 0:
		return ok("Kubernetes %s serves what the server watches; turned off: %s", x.hostVersion, strings.Join(without, ", "))
	}
	return ok("Kubernetes %s serves what the server watches", x.hostVersion)
}

// served returns the resources of a group version, none if there is no such
// group version.
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
		lacks = append(lacks, fmt.Sprintf("%s of %s (served since Kubernetes %s)", strings.Join(r.resources, " and "), r.groupVersion, r.since))
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
	// The youngest is the last in the table.
	return fault(fmt.Sprintf("the host is too old: Kubernetes %s does not serve %s", version, strings.Join(lacks, "; ")),
		fmt.Sprintf("upgrade the host to Kubernetes %s, or add %s to the arguments of borough-apiserver and do without %s",
			missing[len(missing)-1].since, strings.Join(flags, " "), strings.Join(whats, ", ")))
}
