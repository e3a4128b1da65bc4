// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/version"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/corepod"
)

// checkServerNodes warns if one node has all ready servers and another could have some.
// The scheduler spreads Pods only when it creates them.
func (x *examination) checkServerNodes(ctx context.Context) Finding {
	ready := slices.DeleteFunc(slices.Clone(x.servers), func(pod corev1.Pod) bool { return !corepod.IsConditionTrue(&pod.Status, corev1.PodReady) })
	nodes := sets.New[string]()
	for i := range ready {
		nodes.Insert(ready[i].Spec.NodeName)
	}
	switch {
	case len(x.servers) == 0:
		return skipped("no Pods of the server were found; see the check pods")
	case len(ready) < 2:
		return ok("not checked, because fewer than two servers are ready")
	case len(nodes) > 1:
		return ok("%d ready servers run on %d nodes", len(ready), len(nodes))
	}
	node, _ := nodes.PopAny()
	list, err := x.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return skipped("all %d ready servers run on the node %s, and other nodes cannot be listed: %s", len(ready), node, oneLine(err.Error()))
	}
	others := 0
	for i := range list.Items {
		if list.Items[i].Name != node && accepts(&list.Items[i], &ready[0]) {
			others++
		}
	}
	if others == 0 {
		return ok("all %d ready servers run on the node %s, and no other node accepts them", len(ready), node)
	}
	return warning(fmt.Sprintf("all %d ready servers run on the node %s, and the API is unavailable when it fails; nodes that also accept them: %d", len(ready), node, others),
		fmt.Sprintf("kubectl rollout restart deployment/%s --namespace=%s; if they run on one node again, the others have no room for them, or the Deployment lacks the anti-affinity of the manifests", x.deployment.name, x.Namespace))
}

// accepts reports whether the scheduler may put a Pod on a node, if the node has room.
func accepts(node *corev1.Node, pod *corev1.Pod) bool {
	if _, down := notReadySince(node); down || node.Spec.Unschedulable {
		return false
	}
	const withNumbers = true // tolerations may compare values as numbers
	if _, found := schedulinghelpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, repels, withNumbers); found {
		return false
	}
	matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	return err == nil && matches
}

func repels(taint *corev1.Taint) bool { return taint.Effect != corev1.TaintEffectPreferNoSchedule }

// checkServerVersions compares the versions that the servers report. Their images can
// have the same name and differ, if the tag was moved.
func (x *examination) checkServerVersions(ctx context.Context) Finding {
	if len(x.responding) == 0 {
		return skipped("no server responded; see the check pods")
	}
	servers := map[string][]string{} // names of Pods by version
	var unchecked []string
	for i := range x.responding {
		pod := &x.responding[i]
		version, err := x.serverVersion(ctx, pod)
		if err != nil {
			unchecked = append(unchecked, oneLine(err.Error()))
			continue
		}
		servers[version] = append(servers[version], pod.Name)
	}
	versions := sets.List(sets.KeySet(servers))
	switch {
	case len(versions) > 1:
		for i, version := range versions {
			versions[i] += " (" + strings.Join(servers[version], ", ") + ")"
		}
		return warning("the servers have different versions: "+strings.Join(versions, ", "),
			fmt.Sprintf("during an upgrade, wait for kubectl rollout status deployment/%s --namespace=%s; otherwise compare the images of the Pods: a tag that was moved, such as latest, can be another image on each node", x.deployment.name, x.Namespace))
	case len(unchecked) > 0:
		return skipped("%d of %d could not be checked: %s", len(unchecked), len(x.responding), unchecked[0])
	}
	return ok("the version of %d servers is %s", len(x.responding), versions[0])
}

// serverVersion requests /version of a Pod through kube-apiserver, without credentials
// for the server. The rights that clusters have by default allow that.
func (x *examination) serverVersion(ctx context.Context, pod *corev1.Pod) (string, error) {
	a, err := x.raw.get(ctx, serverPath(pod, "version"), nil)
	if err != nil {
		return "", err
	}
	var info version.Info
	if a.status != http.StatusOK || json.Unmarshal(a.body, &info) != nil || info.GitVersion == "" {
		return "", fmt.Errorf("%s", a)
	}
	return info.GitVersion, nil
}
