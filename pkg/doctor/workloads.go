// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/borough-io/borough/pkg/authorization/bootstrap"
)

const (
	// defaultLeaseName is the Lease of the controllers, unless a flag names another.
	defaultLeaseName = "borough-controller-manager"
	// renewWait is how long to wait for the leader to renew the Lease, which it does
	// every 2 seconds by default.
	renewWait     = 6 * time.Second
	renewInterval = 300 * time.Millisecond
	// etcdName is the StatefulSet of etcd in the manifests.
	etcdName = "borough-etcd"
)

// checkController checks that a controller has renewed the Lease. If none has, the
// Pods of the controller say why.
func (x *examination) checkController(ctx context.Context) Finding {
	if !x.controller.boolFlag("leader-elect", true) {
		return x.checkControllerPods(ctx, "leader election is disabled")
	}
	namespace, name := x.lease()
	lease, err := x.client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return x.noController(ctx, fmt.Sprintf("no controller has ever created the Lease %s/%s", namespace, name))
	case err != nil:
		return skipped("cannot read the Lease %s/%s: %s", namespace, name, oneLine(err.Error()))
	case ptr.Deref(lease.Spec.HolderIdentity, "") == "":
		return x.noController(ctx, fmt.Sprintf("no controller holds the Lease %s/%s", namespace, name))
	}
	age := x.now().Sub(ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time)
	if age > time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second && !x.renewed(ctx, lease) {
		return x.noController(ctx, fmt.Sprintf("%s holds the Lease %s/%s, but does not renew it", *lease.Spec.HolderIdentity, namespace, name))
	}
	return x.checkControllerPods(ctx, *lease.Spec.HolderIdentity+" holds the Lease")
}

// lease returns the namespace and the name of the Lease of the controllers.
func (x *examination) lease() (namespace, name string) {
	return cmp.Or(x.controller.lastFlag("leader-elect-resource-namespace"), x.Namespace),
		cmp.Or(x.controller.lastFlag("leader-elect-resource-name"), defaultLeaseName)
}

// renewed waits until the Lease has changed, and reports whether it did. The time in
// the Lease is from the clock of the leader, which can be wrong.
func (x *examination) renewed(ctx context.Context, lease *coordinationv1.Lease) bool {
	err := wait.PollUntilContextTimeout(ctx, renewInterval, renewWait, true, func(ctx context.Context) (bool, error) {
		now, err := x.client.CoordinationV1().Leases(lease.Namespace).Get(ctx, lease.Name, metav1.GetOptions{})
		return err == nil && !now.Spec.RenewTime.Equal(lease.Spec.RenewTime), nil
	})
	return err == nil
}

// noController returns the fault that no controller leads.
func (x *examination) noController(ctx context.Context, problem string) Finding {
	problem = "no controller leads, so deleted Namespaces stay Terminating: " + problem
	if x.controller == nil {
		return fault(problem+"; "+fmt.Sprintf("no Deployment in the namespace %s runs as the service account %s", x.Namespace, x.ControllerServiceAccount),
			deploy+", or pass the --controller-service-account that the controller runs as")
	}
	if problems, fixes := x.controllerProblems(ctx); len(problems) > 0 {
		return fault(problem+"; "+strings.Join(problems, "; "), strings.Join(fixes, "; "))
	}
	return fault(problem, fmt.Sprintf("check kubectl logs deployment/%s --namespace=%s, and the check controller rights; if it has no Pods, scale it", x.controller.name, x.Namespace))
}

// checkControllerPods checks the Pods of the controller. The finding begins with the
// message.
func (x *examination) checkControllerPods(ctx context.Context, message string) Finding {
	if x.controller == nil {
		return ok("%s", message)
	}
	if problems, fixes := x.controllerProblems(ctx); len(problems) > 0 {
		return fault(message+"; not all Pods of the controller are ready: "+strings.Join(problems, "; "), strings.Join(fixes, "; "))
	}
	return ok("%s", message)
}

// checkEtcdMembers checks the Pods of the etcd in the manifests.
func (x *examination) checkEtcdMembers(ctx context.Context) Finding {
	set, err := x.client.AppsV1().StatefulSets(x.Namespace).Get(ctx, etcdName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return ok("not checked, because the namespace %s has no StatefulSet %s", x.Namespace, etcdName)
	case err != nil:
		return skipped("cannot read the StatefulSet %s: %s", etcdName, oneLine(err.Error()))
	}
	replicas := int(ptr.Deref(set.Spec.Replicas, 1))
	want := cmp.Or(initialMembers(set), replicas)
	if replicas != want {
		return fault(fmt.Sprintf("the StatefulSet %s has %d replicas instead of %d", etcdName, replicas, want),
			fmt.Sprintf("kubectl scale statefulset %s --replicas=%d --namespace=%s", etcdName, want, x.Namespace))
	}
	pods, err := x.listPods(ctx, set.Spec.Selector)
	if err != nil {
		return skipped("cannot list Pods in %s: %s", x.Namespace, oneLine(err.Error()))
	}
	// On a node that is down, a Pod that is being deleted stays, and its StatefulSet
	// creates no other.
	pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool {
		if pod.DeletionTimestamp == nil {
			return false
		}
		_, down := x.nodeDown(ctx, pod.Spec.NodeName)
		return !down
	})
	problems, fixes := x.podProblems(ctx, pods, notReady)
	switch {
	case len(problems) > 0:
	case len(pods) < want:
		problems = []string{fmt.Sprintf("%d of %d members exist", len(pods), want)}
		fixes = []string{fmt.Sprintf("check kubectl describe statefulset %s --namespace=%s", etcdName, x.Namespace)}
	default:
		if name := x.etcdAlarm(ctx, pods); name != "" {
			return fault(fmt.Sprintf("all %d members are ready, but etcd has the alarm %s", want, name), fixAlarm(name))
		}
		return ok("all %d members are ready", want)
	}
	return fault(fmt.Sprintf("%s; without %d members etcd accepts no writes", strings.Join(problems, "; "), want/2+1), strings.Join(fixes, "; "))
}

// etcdAlarm returns the alarm that the members of etcd report, of which it asks one, or ""
// if there is none. With an alarm, all members are ready, and reads succeed.
func (x *examination) etcdAlarm(ctx context.Context, members []corev1.Pod) string {
	if len(members) == 0 {
		return ""
	}
	m := &members[0]
	a, err := x.raw.get(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/http:%s:%d/proxy/health", m.Namespace, m.Name, port(m, "metrics", 2381)), nil)
	if err != nil {
		return "" // not known
	}
	if match := alarm.FindSubmatch(a.body); match != nil {
		return string(match[1])
	}
	return ""
}

func fixAlarm(name string) string {
	if name == "NOSPACE" {
		return "the database is full, so writes fail with 507: delete what is not needed, then compact and defragment etcd, and disarm the alarm, as in docs/operations.md, When etcd is full"
	}
	return "check etcdctl alarm list, and the log of each member"
}

// initialMembers returns the number of members that etcd was created with, which cannot
// be changed, or 0 if the arguments do not say it.
func initialMembers(set *appsv1.StatefulSet) int {
	for _, container := range set.Spec.Template.Spec.Containers {
		if members := (&deployment{container: container}).flag("initial-cluster"); members != nil {
			return len(members)
		}
	}
	return 0
}

// controllerProblems returns what is wrong with the Pods of the controller. It returns
// no problems if they cannot be listed: another check reports that.
func (x *examination) controllerProblems(ctx context.Context) (problems, fixes []string) {
	pods, err := x.deploymentPods(ctx, x.controller)
	if err != nil {
		return nil, nil
	}
	return x.deploymentProblems(ctx, x.controller, pods, notReady)
}

// deploymentProblems returns what is wrong with the Pods of a Deployment, as podProblems
// does, and whether it has fewer than it should: a quota or an admission policy can refuse
// them.
func (x *examination) deploymentProblems(ctx context.Context, d *deployment, pods []corev1.Pod, check func(*corev1.Pod) (problem, fix string)) (problems, fixes []string) {
	problems, fixes = x.podProblems(ctx, pods, check)
	if len(pods) < d.replicas {
		problems = append(problems, fmt.Sprintf("%d of %d Pods of the Deployment %s exist", len(pods), d.replicas, d.name))
		fixes = append(fixes, "check kubectl describe replicasets --namespace="+x.Namespace)
	}
	return problems, fixes
}

// podProblems returns what is wrong with Pods according to their status and their
// nodes. It checks those without a problem with check.
func (x *examination) podProblems(ctx context.Context, pods []corev1.Pod, check func(*corev1.Pod) (problem, fix string)) (problems, fixes []string) {
	for i := range pods {
		problem, fix := x.podProblem(ctx, &pods[i])
		if problem == "" {
			problem, fix = check(&pods[i])
		}
		if problem == "" {
			continue
		}
		problems = append(problems, pods[i].Name+": "+problem)
		if !slices.Contains(fixes, fix) {
			fixes = append(fixes, fix)
		}
	}
	return problems, fixes
}

// deploymentPods returns the Pods of a Deployment that have not ended, without those that
// are being deleted: others replace them at once.
func (x *examination) deploymentPods(ctx context.Context, d *deployment) ([]corev1.Pod, error) {
	pods, err := x.listPods(ctx, d.selector)
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil }), err
}

// listPods returns the Pods that have not ended. One that was evicted stays as Failed, and
// another has replaced it.
func (x *examination) listPods(ctx context.Context, s *metav1.LabelSelector) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, err
	}
	pods, err := x.client.CoreV1().Pods(x.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	}), nil
}

// podProblem returns why a Pod does not run according to its status and its node, and
// the fix.
func (x *examination) podProblem(ctx context.Context, pod *corev1.Pod) (problem, fix string) {
	kubectl := func(command string) string {
		return fmt.Sprintf("check kubectl %s %s --namespace=%s", command, pod.Name, pod.Namespace)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return oneLine("not scheduled: " + c.Message), kubectl("describe pod")
		}
	}
	if since, down := x.nodeDown(ctx, pod.Spec.NodeName); down {
		problem = fmt.Sprintf("its node %s has not been ready for %s", pod.Spec.NodeName, x.now().Sub(since).Round(time.Second))
		fix = "check kubectl describe node " + pod.Spec.NodeName
		if pod.DeletionTimestamp != nil {
			fix += "; if the node is off for good, kubectl delete node " + pod.Spec.NodeName + ", so that the Pod is removed"
		}
		return problem, fix
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

// notReady returns the reason of the condition Ready of a Pod, and the fix.
func notReady(pod *corev1.Pod) (problem, fix string) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse {
			return oneLine("not ready: " + c.Reason + " " + c.Message), fmt.Sprintf("check kubectl logs %s --namespace=%s", pod.Name, pod.Namespace)
		}
	}
	return "", ""
}

// nodeDown reports whether a node is not ready, and since when. A node that the user
// cannot read counts as ready.
func (x *examination) nodeDown(ctx context.Context, name string) (since time.Time, down bool) {
	if name == "" {
		return time.Time{}, false
	}
	node, err := x.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, false
	}
	return notReadySince(node)
}

// notReadySince reports whether a node is not ready, and since when.
func notReadySince(node *corev1.Node) (since time.Time, down bool) {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastTransitionTime.Time, c.Status != corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

// controllerRights returns the rights that the controller has standalone, and those
// for its Lease.
func (x *examination) controllerRights() []right {
	var rights []right
	for _, rule := range bootstrap.ControllerRules() {
		for _, group := range rule.APIGroups {
			rights = append(rights, right{verbs: rule.Verbs, group: group, resources: rule.Resources})
		}
	}
	if x.controller.boolFlag("leader-elect", true) {
		const group = "coordination.k8s.io"
		namespace, name := x.lease()
		rights = append(rights,
			right{verbs: []string{"create"}, group: group, resources: []string{"leases"}, namespace: namespace},
			right{verbs: []string{"get", "update"}, group: group, resources: []string{"leases"}, namespace: namespace, name: name})
	}
	for _, flag := range []string{"etcd-ca-secret", "etcd-cert-secret", "etcd-client-cert-secret"} {
		if namespace, name, found := strings.Cut(x.controller.lastFlag(flag), "/"); found {
			rights = append(rights, right{verbs: []string{"get", "list", "watch", "update"}, resources: []string{"secrets"}, namespace: namespace, name: name})
		}
	}
	return rights
}

func (x *examination) checkControllerRights(ctx context.Context) Finding {
	return x.checkAccess(ctx, x.ControllerServiceAccount, x.controllerRights(), "has the rights that the controller needs", "a role or a binding is missing: "+deploy)
}
