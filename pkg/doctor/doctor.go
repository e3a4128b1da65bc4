// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor examines a deployment of Borough in a host cluster from
// outside. It names what is wrong, and what cures it. It changes nothing.
package doctor

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options say where Borough is deployed.
type Options struct {
	// Namespace of the host that the server runs in.
	Namespace string
	// ServiceAccount in Namespace that the server runs as.
	ServiceAccount string
}

// Status is what became of a check.
type Status string

const (
	// OK means that there is nothing wrong.
	OK Status = "ok"
	// Fault means that there is something to cure.
	Fault Status = "fault"
	// Skipped means that it could not be found out.
	Skipped Status = "skipped"
)

// Finding is the result of a check.
type Finding struct {
	// Check is the name of the check.
	Check  string `json:"check"`
	Status Status `json:"status"`
	// Message says what was found, or why a check was skipped.
	Message string `json:"message"`
	// Cure says what to do about a fault.
	Cure string `json:"cure,omitempty"`
}

func ok(format string, args ...any) Finding {
	return Finding{Status: OK, Message: fmt.Sprintf(format, args...)}
}

func skipped(format string, args ...any) Finding {
	return Finding{Status: Skipped, Message: fmt.Sprintf(format, args...)}
}

func fault(problem, cure string) Finding {
	return Finding{Status: Fault, Message: problem, Cure: cure}
}

// Faults counts the faults.
func Faults(findings []Finding) int {
	n := 0
	for _, f := range findings {
		if f.Status == Fault {
			n++
		}
	}
	return n
}

// requestTimeout bounds each request. Ten seconds are long for a cluster that is
// well, and short for someone who waits.
const requestTimeout = 10 * time.Second

// examination is under way. Checks are made in order, and what one finds is
// there for those that follow.
type examination struct {
	Options
	host   *host
	client kubernetes.Interface

	user        string      // who asks, as the host knows him; empty if it does not say
	hostVersion string      // such as v1.36.3, and what it emulates
	deployment  *deployment // nil if there is none to be seen
	apiService  *apiService // nil if there is none to be seen
	hostClock   clock
	clocks      []clock // of the servers
}

type check struct {
	name string
	// needs are the checks without whose success this one can't be made.
	needs []string
	run   func(context.Context) Finding
}

// Names of checks that others need.
const (
	checkHost       = "host"
	checkDeployment = "deployment"
	checkAPIService = "APIService"
	checkFrontProxy = "front-proxy headers"
)

func (x *examination) checks() []check {
	afterHost := []string{checkHost}
	return []check{
		{checkHost, nil, x.checkHost},
		{checkDeployment, afterHost, x.checkDeployment},
		{"host version", afterHost, x.checkVersion},
		{"service account", afterHost, x.checkServiceAccount},
		{"delegator binding", afterHost, x.checkDelegator},
		{"reader binding", afterHost, x.checkReader},
		{"rights", afterHost, x.checkRights},
		{checkAPIService, afterHost, x.checkAPIService},
		{"APIService available", []string{checkHost, checkAPIService}, x.checkAvailable},
		{"caBundle", []string{checkHost, checkAPIService}, x.checkCABundle},
		{"front-proxy configuration", afterHost, x.checkFrontProxyConfiguration},
		{checkFrontProxy, []string{checkHost, checkAPIService}, x.checkFrontProxy},
		{"etcd", []string{checkHost, checkAPIService, checkFrontProxy}, x.checkEtcd},
		{"pods", []string{checkHost, checkDeployment}, x.checkPods},
		{"clocks", afterHost, x.checkClocks},
	}
}

// Examine makes all checks with a configuration of the host cluster. It fails
// when it can't ask at all, or the context ends; what is wrong with the
// deployment is among the findings.
func Examine(ctx context.Context, config *rest.Config, options Options) ([]Finding, error) {
	config = rest.CopyConfig(config)
	config.Timeout = requestTimeout
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	host, err := newHost(config)
	if err != nil {
		return nil, err
	}
	defer host.http.CloseIdleConnections()
	client, err := kubernetes.NewForConfigAndClient(config, host.http)
	if err != nil {
		return nil, fmt.Errorf("make a client of the host cluster: %w", err)
	}
	x := &examination{Options: options, host: host, client: client}
	return makeChecks(ctx, x.checks())
}

func makeChecks(ctx context.Context, checks []check) ([]Finding, error) {
	var findings []Finding
	status := map[string]Status{}
	for _, c := range checks {
		finding := Finding{}
		if missing := firstNotOK(c.needs, status); missing != "" {
			finding = skipped("needs the check %q, which is not ok", missing)
		} else {
			finding = c.run(ctx)
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("check %s: %w", c.name, context.Cause(ctx))
		}
		finding.Check = c.name
		status[c.name] = finding.Status
		findings = append(findings, finding)
	}
	return findings, nil
}

func firstNotOK(needs []string, status map[string]Status) string {
	for _, name := range needs {
		if status[name] != OK {
			return name
		}
	}
	return ""
}
