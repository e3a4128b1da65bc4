// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

const (
	fixEtcd = "check that every member of etcd runs and has disk space (etcdctl endpoint status, without --cluster), " +
		"that the Pods can reach --etcd-servers, and that the files in --etcd-cafile, --etcd-certfile and --etcd-keyfile are for this etcd and not expired"
	// listTimeout is the timeout of a list in the server. It is less than
	// requestTimeout, so that the server can still respond.
	listTimeout = "5s"
)

// checkEtcd lists Namespaces consistently, for which the server needs etcd.
func (x *examination) checkEtcd(ctx context.Context) Finding {
	a, err := x.raw.get(ctx, groupPath+"/namespaces", url.Values{"limit": {"1"}, "timeout": {listTimeout}})
	const fixUnreached = "see the checks pods and APIService available"
	if err != nil {
		return fault("no response to a request that needs etcd: "+oneLine(err.Error()), fixUnreached+"; if they are ok, "+fixEtcd)
	}
	switch {
	case a.status == http.StatusOK:
		return ok("the server returned a consistent list")
	case a.status == http.StatusForbidden && userIn(a) == x.user:
		return skipped("%s cannot list namespaces.%s", x.who(), v1.GroupName)
	case a.status == http.StatusTooManyRequests && !a.isStatus():
		// Flow control answers with plain text; storage that is not ready, with a Status.
		return skipped("the server is busy: %s", a)
	case a.status == http.StatusServiceUnavailable && !a.isStatus():
		// The aggregator answers with plain text if it cannot reach a server.
		return fault("kube-apiserver may not reach all servers: "+a.String(), fixUnreached)
	case a.status >= http.StatusInternalServerError || a.status == http.StatusTooManyRequests:
		return fault("the server responds, but a request that needs etcd fails: "+a.String(), fixEtcd)
	}
	return fault("a list of Namespaces fails: "+a.String(), "check the log of the server")
}

// checkPods checks the status and the node of each Pod of the server, and its /readyz,
// which names what is wrong.
func (x *examination) checkPods(ctx context.Context) Finding {
	live, err := x.deploymentPods(ctx, x.deployment)
	if err != nil {
		return skipped("cannot list Pods in %s: %s", x.Namespace, oneLine(err.Error()))
	}
	x.servers = live
	if len(live) == 0 && x.deployment.replicas == 0 {
		return skipped("the Deployment %s is scaled to 0", x.deployment.name)
	}
	var unchecked []string
	problems, fixes := x.deploymentProblems(ctx, x.deployment, live, func(pod *corev1.Pod) (problem, fix string) {
		problem, fix, responded := x.checkReadyz(ctx, pod)
		if !responded {
			unchecked = append(unchecked, problem)
		}
		if !responded || problem == "" {
			return notReady(pod)
		}
		return problem, fix
	})
	switch {
	case len(problems) > 0:
		return fault(strings.Join(problems, "; "), strings.Join(fixes, "; "))
	case len(unchecked) > 0:
		return skipped("%d of %d could not be checked: %s", len(unchecked), len(live), unchecked[0])
	}
	return ok("all health checks of %d Pods succeed", len(live))
}

// checkReadyz requests /readyz of a Pod through kube-apiserver. If the server did not
// respond, the problem is the cause.
func (x *examination) checkReadyz(ctx context.Context, pod *corev1.Pod) (problem, fix string, responded bool) {
	a, err := x.raw.get(ctx, serverPath(pod, "readyz"), url.Values{"verbose": {""}})
	if err != nil {
		return oneLine(err.Error()), "", false
	}
	failed := failedCheck.FindAllStringSubmatch(string(a.body), -1)
	// Only the server names failed checks. A response without them may be from
	// kube-apiserver, which could not reach the Pod.
	if a.status != http.StatusOK && len(failed) == 0 {
		return a.String(), "", false
	}
	a.clock.name = "pod " + pod.Name
	x.clocks = append(x.clocks, a.clock)
	x.responding = append(x.responding, *pod)
	if len(failed) == 0 {
		return "", "", true
	}
	fix = fmt.Sprintf("check kubectl logs %s --namespace=%s", pod.Name, pod.Namespace)
	var names []string
	for _, match := range failed {
		names = append(names, match[1])
	}
	switch {
	case slices.Contains(names, "etcd") || slices.Contains(names, "etcd-readiness"):
		fix = fixEtcd
	case slices.Contains(names, "front-proxy-ca"):
		fix = "see the checks reader binding and front-proxy configuration; " + fix
	case slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "informer") }):
		fix = "see the checks cluster version and rights; " + fix
	}
	return "not ready, failed checks: " + strings.Join(names, ", "), fix, true
}

// serverPath returns the path at which kube-apiserver forwards requests to the server in
// a Pod.
func serverPath(pod *corev1.Pod, path string) string {
	return fmt.Sprintf("/api/v1/namespaces/%s/pods/https:%s:%d/proxy/%s", pod.Namespace, pod.Name, port(pod, "https", 6443), path)
}

// port returns the port of a Pod with a name, or the default if none has it.
func port(pod *corev1.Pod, name string, number int32) int32 {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == name {
				return p.ContainerPort
			}
		}
	}
	return number
}
