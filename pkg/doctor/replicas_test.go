// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

const (
	nodesPath        = "/api/v1/nodes"
	versionPath      = podsPath + "/https:server-0:6443/proxy/version"
	otherVersionPath = podsPath + "/https:server-1:6443/proxy/version"
)

// servers makes the cluster have two ready servers on these nodes, of the nodes node0 to
// node2.
func (c *fakeCluster) servers(on ...string) {
	nodes := corev1.NodeList{Items: make([]corev1.Node, 3)}
	for i, name := range []string{"node0", "node1", "node2"} {
		nodes.Items[i].Name = name
		nodes.Items[i].Labels = map[string]string{"name": name}
	}
	c.answers[nodesPath] = fakeAnswer{body: nodes}
	var pods corev1.PodList
	for i, name := range []string{"server-0", "server-1"} {
		pod := c.pod().DeepCopy()
		pod.Name, pod.Spec.NodeName = name, on[i]
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		pods.Items = append(pods.Items, *pod)
	}
	c.answers[podsPath] = fakeAnswer{body: pods}
	c.answers[podsPath+"/https:server-1:6443/proxy/readyz"] = c.answers[readyzPath]
	c.answers[otherVersionPath] = c.answers[versionPath]
}

// onNode0 makes both servers run on node0, and changes the other nodes.
func (c *fakeCluster) onNode0(change func(*corev1.Node)) {
	c.servers("node0", "node0")
	nodes := c.answers[nodesPath].body.(corev1.NodeList).Items
	change(&nodes[1])
	change(&nodes[2])
}

// TestFindingsOfReplicas has the findings of servers that are on one node, or differ.
func TestFindingsOfReplicas(t *testing.T) {
	oneNode := map[string]want{"server nodes": {Warning, "all 2 ready servers run on the node node0, and the API is unavailable when it fails; nodes that also accept them: 2", "kubectl rollout restart deployment/server --namespace=borough-system"}}
	noOther := map[string]want{"server nodes": {OK, "no other node accepts them", ""}}
	taint := func(effect corev1.TaintEffect) func(*corev1.Node) {
		return func(node *corev1.Node) { node.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: effect}} }
	}
	testFindings(t, []findingsCase{
		{"one server", func(_ *testing.T, c *fakeCluster) { c.answers[nodesPath] = failure(500, "not needed") },
			map[string]want{"server nodes": {OK, "fewer than two servers are ready", ""}, "server versions": {OK, "the version of 1 servers is v0.1.0", ""}}},
		{"two nodes", func(_ *testing.T, c *fakeCluster) {
			c.servers("node0", "node1")
			c.answers[nodesPath] = failure(500, "not needed")
		}, map[string]want{"server nodes": {OK, "2 ready servers run on 2 nodes", ""}, "server versions": {OK, "the version of 2 servers is v0.1.0", ""}}},
		{"one node of several", func(_ *testing.T, c *fakeCluster) { c.servers("node0", "node0") }, oneNode},
		{"another server that is not ready", func(_ *testing.T, c *fakeCluster) {
			c.servers("node0", "node0")
			list := c.answers[podsPath].body.(corev1.PodList)
			list.Items = append(list.Items, *list.Items[0].DeepCopy())
			list.Items[2].Spec.NodeName, list.Items[2].Status.Conditions[0].Status = "node1", corev1.ConditionFalse
			c.answers[podsPath] = fakeAnswer{body: list}
		}, map[string]want{"server nodes": oneNode["server nodes"], "pods": {Fault, "not ready", ""}}},
		{"another server that is being deleted", func(_ *testing.T, c *fakeCluster) {
			c.servers("node0", "node0")
			list := c.answers[podsPath].body.(corev1.PodList)
			list.Items = append(list.Items, *list.Items[0].DeepCopy())
			list.Items[2].Spec.NodeName, list.Items[2].DeletionTimestamp = "node1", new(metav1.Now())
			c.answers[podsPath] = fakeAnswer{body: list}
		}, oneNode},
		{"cordoned nodes", func(_ *testing.T, c *fakeCluster) {
			c.onNode0(func(node *corev1.Node) { node.Spec.Unschedulable = true })
		}, noOther},
		{"nodes that are down", func(_ *testing.T, c *fakeCluster) {
			c.onNode0(func(node *corev1.Node) {
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(time.Now())}}
			})
		}, noOther},
		{"nodes with a taint", func(_ *testing.T, c *fakeCluster) { c.onNode0(taint(corev1.TaintEffectNoSchedule)) }, noOther},
		{"nodes with a taint that evicts", func(_ *testing.T, c *fakeCluster) { c.onNode0(taint(corev1.TaintEffectNoExecute)) }, noOther},
		{"nodes with a taint that is a preference", func(_ *testing.T, c *fakeCluster) { c.onNode0(taint(corev1.TaintEffectPreferNoSchedule)) }, oneNode},
		{"nodes with a taint that is tolerated", func(_ *testing.T, c *fakeCluster) {
			c.pod().Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
			c.onNode0(taint(corev1.TaintEffectNoSchedule))
		}, oneNode},
		{"nodes that are not selected", func(_ *testing.T, c *fakeCluster) {
			c.pod().Spec.NodeSelector = map[string]string{"name": "node0"}
			c.servers("node0", "node0")
		}, noOther},
		{"nodes that cannot be listed", func(_ *testing.T, c *fakeCluster) {
			c.servers("node0", "node0")
			c.answers[nodesPath] = failure(403, "nodes is forbidden")
		}, map[string]want{"server nodes": {Skipped, "all 2 ready servers run on the node node0, and other nodes cannot be listed: nodes is forbidden", ""}}},
		{"versions", func(_ *testing.T, c *fakeCluster) {
			c.servers("node0", "node1")
			c.answers[otherVersionPath] = fakeAnswer{body: version.Info{GitVersion: "v0.2.0"}}
		}, map[string]want{"server versions": {Warning, "the servers have different versions: v0.1.0 (server-0), v0.2.0 (server-1)", "kubectl rollout status deployment/server --namespace=borough-system"}}},
		{"a version that cannot be read", func(_ *testing.T, c *fakeCluster) {
			c.servers("node0", "node1")
			c.answers[otherVersionPath] = failure(403, "no")
		}, map[string]want{"server versions": {Skipped, "1 of 2 could not be checked: 403: no", ""}}},
	})
}
