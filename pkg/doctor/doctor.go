// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor checks a deployment of Borough in a cluster from outside. It
// reports faults and their fixes, and changes nothing.
package doctor

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options are the place where Borough is deployed.
type Options struct {
	// Namespace of the cluster that the server runs in.
	Namespace string
	// ServiceAccount in Namespace that the server runs as.
	ServiceAccount string
	// ControllerServiceAccount in Namespace that the controller runs as.
	ControllerServiceAccount string
	// Recheck is how long to wait before all checks are made again if there is a
	// fault. The findings are those of the last time, because one fault can hide
	// another. Zero means that the checks are made once.
	Recheck time.Duration
}

// Status is the outcome of a check.
type Status string

const (
	// OK means that the check found no fault.
	OK Status = "ok"
	// Warning means that the check found what can be intended, but is dangerous if it
	// is not.
	Warning Status = "warning"
	// Fault means that the check found a fault.
	Fault Status = "fault"
	// Skipped means that the check could not be made.
	Skipped Status = "skipped"
)

// Finding is the result of a check.
type Finding struct {
	// Check is the name of the check.
	Check  string `json:"check"`
	Status Status `json:"status"`
	// Message is what the check found, or why it was skipped.
	Message string `json:"message"`
	// Fix is how to fix a fault, or what to do about a warning.
	Fix string `json:"fix,omitempty"`
}

func ok(format string, args ...any) Finding {
	return Finding{Status: OK, Message: fmt.Sprintf(format, args...)}
}

func skipped(format string, args ...any) Finding {
	return Finding{Status: Skipped, Message: fmt.Sprintf(format, args...)}
}

func warning(problem, fix string) Finding {
	return Finding{Status: Warning, Message: problem, Fix: fix}
}

func fault(problem, fix string) Finding {
	return Finding{Status: Fault, Message: problem, Fix: fix}
}

// Faults returns the number of faults.
func Faults(findings []Finding) int {
	n := 0
	for _, f := range findings {
		if f.Status == Fault {
			n++
		}
	}
	return n
}

// requestTimeout bounds each request. A healthy cluster needs much less, and a user
// can wait that long.
const requestTimeout = 10 * time.Second

// examination is the state of one run. Checks run in order, and each can use what
// earlier ones found.
type examination struct {
	Options
	raw    *rawClient
	client kubernetes.Interface

	user         string       // user of the kubeconfig; empty if not known
	version      string       // such as v1.36.3, and the version that it emulates
	deployment   *deployment  // of the server; nil if not found
	controller   *deployment  // nil if not found
	apiService   *apiService  // nil if not found
	servers      []corev1.Pod // Pods of the server that are not being deleted
	responding   []corev1.Pod // those of them whose server responded
	clusterClock clock        // of kube-apiserver
	clocks       []clock      // of the servers
}

type check struct {
	name string
	// needs are the checks that must be ok for this one to run.
	needs []string
	run   func(context.Context) Finding
}

// Names of checks that other checks need or refer to.
const (
	checkCluster    = "cluster"
	checkDeployment = "deployment"
	checkAPIService = "APIService"
	checkFrontProxy = "front-proxy headers"
)

func (x *examination) checks() []check {
	afterCluster := []string{checkCluster}
	return []check{
		{checkCluster, nil, x.checkCluster},
		{checkDeployment, afterCluster, x.checkDeployment},
		{"cluster version", afterCluster, x.checkVersion},
		{"service account", afterCluster, x.checkServiceAccount},
		{"delegator binding", afterCluster, x.checkDelegator},
		{"reader binding", afterCluster, x.checkReader},
		{"rights", afterCluster, x.checkRights},
		{"flow control", afterCluster, x.checkFlowControl},
		{checkAPIService, afterCluster, x.checkAPIService},
		{"APIService available", []string{checkCluster, checkAPIService}, x.checkAvailable},
		{"caBundle", []string{checkCluster, checkAPIService}, x.checkCABundle},
		{"caBundle policy", []string{checkCluster, checkAPIService}, x.checkCABundlePolicy},
		{"front-proxy configuration", afterCluster, x.checkFrontProxyConfiguration},
		{checkFrontProxy, []string{checkCluster, checkAPIService}, x.checkFrontProxy},
		{"etcd", []string{checkCluster, checkAPIService, checkFrontProxy}, x.checkEtcd},
		{"pods", []string{checkCluster, checkDeployment}, x.checkPods},
		{"server nodes", []string{checkCluster, checkDeployment}, x.checkServerNodes},
		{"server versions", []string{checkCluster, checkDeployment}, x.checkServerVersions},
		{"controller", afterCluster, x.checkController},
		{"controller rights", afterCluster, x.checkControllerRights},
		{"etcd members", afterCluster, x.checkEtcdMembers},
		{"etcd certificates", []string{checkCluster, checkDeployment}, x.checkEtcdCertificates},
		{"namespace controller", []string{checkCluster, checkDeployment}, x.checkNamespaceController},
		{"admission policies", afterCluster, x.checkPolicies},
		{"clocks", afterCluster, x.checkClocks},
	}
}

// Examine runs all checks with a client config of the cluster, and returns the
// findings, faults included. It returns an error if it cannot create a client or
// the context ends.
func Examine(ctx context.Context, config *rest.Config, options Options) ([]Finding, error) {
	config = rest.CopyConfig(config)
	config.Timeout = requestTimeout
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	raw, err := newRawClient(config)
	if err != nil {
		return nil, err
	}
	defer raw.http.CloseIdleConnections()
	client, err := kubernetes.NewForConfigAndClient(config, raw.http)
	if err != nil {
		return nil, fmt.Errorf("create a client for the cluster: %w", err)
	}
	examine := func() ([]Finding, error) {
		return runChecks(ctx, (&examination{Options: options, raw: raw, client: client}).checks())
	}
	findings, err := examine()
	if err != nil || Faults(findings) == 0 || options.Recheck == 0 {
		return findings, err
	}
	// What a rollout or the return of a node causes is over soon.
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(options.Recheck):
	}
	return examine()
}

func runChecks(ctx context.Context, checks []check) ([]Finding, error) {
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
