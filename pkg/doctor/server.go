// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

const (
	cureEtcd = "see that every member of etcd runs and has room on its disk (etcdctl endpoint status, alarm list), " +
		"that the Pods reach --etcd-servers, and that --etcd-cafile, --etcd-certfile and --etcd-keyfile are those of this etcd and not expired"
	// listTimeout bounds a list at the server, so that it answers before we give
	// up on it.
	listTimeout = "5s"
)

// checkEtcd lists Namespaces, of which the server has to ask etcd whether they
// are the latest.
func (x *examination) checkEtcd(ctx context.Context) Finding {
	a, err := x.host.get(ctx, groupPath+"/namespaces", url.Values{"limit": {"1"}, "timeout": {listTimeout}})
	if err != nil {
		return fault("the server does not answer what it needs etcd for: "+oneLine(err.Error()), cureEtcd)
	}
	switch {
	case a.status == http.StatusOK:
		return ok("a consistent list was served")
	case a.status == http.StatusForbidden && userIn(a) == x.user:
		return skipped("%s may not list namespaces.%s", x.who(), v1.GroupName)
	case a.status == http.StatusTooManyRequests && !strings.Contains(string(a.body), "storage is"):
		return skipped("the server is busy: %s", a)
	case a.status >= http.StatusInternalServerError || a.status == http.StatusTooManyRequests:
		return fault("the server answers without etcd, but not what it needs etcd for: "+a.String(), cureEtcd)
	}
	return fault("a list of Namespaces: "+a.String(), "the log of the server says why")
}

// checkPods looks at the Pods themselves, and asks each for its health.
func (x *examination) checkPods(ctx context.Context) Finding {
	selector, err := metav1.LabelSelectorAsSelector(x.deployment.selector)
	if err != nil {
		return skipped("can't read the selector of the Deployment: %s", err)
	}
	pods, err := x.client.CoreV1().Pods(x.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return skipped("can't list Pods in %s: %s", x.Namespace, oneLine(err.Error()))
	}
	live := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	if len(live) == 0 {
		return skipped("the Deployment %s has none; if it should, kubectl describe replicasets --namespace=%s says why", x.deployment.name, x.Namespace)
	}
	var problems, cures, unasked []string
	for i := range live {
		problem, cure := podProblem(&live[i])
		if problem == "" {
			var asked bool
			if problem, cure, asked = x.askPod(ctx, &live[i]); !asked {
				unasked = append(unasked, problem)
				continue
			}
		}
		if problem == "" {
			continue
		}
		problems = append(problems, live[i].Name+": "+problem)
		if !slices.Contains(cures, cure) {
			cures = append(cures, cure)
		}
	}
	switch {
	case len(problems) > 0:
		return fault(strings.Join(problems, "; "), strings.Join(cures, "; "))
	case len(unasked) > 0:
		return skipped("%d of %d could not be asked: %s", len(unasked), len(live), unasked[0])
	}
	return ok("all checks of the health of %d are good", len(live))
}

// podProblem is why a Pod does not run, as the host tells it.
func podProblem(pod *corev1.Pod) (problem, cure string) {
	kubectl := func(command string) string {
		return fmt.Sprintf("kubectl %s %s --namespace=%s says more", command, pod.Name, pod.Namespace)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return oneLine("not scheduled: " + c.Message), kubectl("describe pod")
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		last := c.LastTerminationState.Terminated
		switch waiting := c.State.Waiting; {
		case waiting != nil && last != nil:
			return oneLine(fmt.Sprintf("%s, ended with exit code %d %s", waiting.Reason, last.ExitCode, last.Message)), kubectl("logs --previous")
		case waiting != nil:
			return oneLine(waiting.Reason + " " + waiting.Message), kubectl("describe pod")
		}
	}
	if pod.Status.PodIP == "" {
		return "has no address yet, phase " + string(pod.Status.Phase), kubectl("describe pod")
	}
	return "", ""
}

var failedCheck = regexp.MustCompile(`(?m)^\[-\](\S+) failed`)

// askPod asks a Pod for its health, through the host. If it could not be asked,
// the problem is why.
func (x *examination) askPod(ctx context.Context, pod *corev1.Pod) (problem, cure string, asked bool) {
	a, err := x.host.get(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/https:%s:%d/proxy/readyz", pod.Namespace, pod.Name, port(pod)), url.Values{"verbose": {""}})
	if err != nil {
		return oneLine(err.Error()), "", false
	}
	failed := failedCheck.FindAllStringSubmatch(string(a.body), -1)
	// Only the server itself names its checks; other failures may be of the way
	// there.
	if a.status != http.StatusOK && len(failed) == 0 {
		return a.String(), "", false
	}
	a.clock.name = "pod " + pod.Name
	x.clocks = append(x.clocks, a.clock)
	if len(failed) == 0 {
		return "", "", true
	}
	cure = fmt.Sprintf("kubectl logs %s --namespace=%s says why", pod.Name, pod.Namespace)
	var names []string
	for _, match := range failed {
		names = append(names, match[1])
	}
	switch {
	case slices.Contains(names, "etcd") || slices.Contains(names, "etcd-readiness"):
		cure = cureEtcd
	case slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "informer") }):
		cure = "see the checks host version and rights; " + cure
	}
	return "not ready, for " + strings.Join(names, ", "), cure, true
}

// port is where the Pod serves.
func port(pod *corev1.Pod) int32 {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == "https" {
				return p.ContainerPort
			}
		}
	}
	return 6443
}
