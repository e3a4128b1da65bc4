// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// TestChartMatchesKustomize checks that the chart and kustomize render the same
// objects, except for Helm's labels and the namespace, which Helm creates only
// with --create-namespace.
func TestChartMatchesKustomize(t *testing.T) {
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			want := decode(t, kustomize(t, name))
			got := decode(t, helm(t, valuesOf(name)))

			ns := key("Namespace", "", namespace)
			if want[ns] == nil {
				t.Errorf("kustomize renders no %s", ns)
			}
			delete(want, ns)
			for _, o := range got {
				labels := o.GetLabels()
				for label, value := range map[string]string{"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "borough-0.1.0"} {
					if labels[label] != value {
						t.Errorf("%T %s: label %s is %q", o, o.GetName(), label, labels[label])
					}
					delete(labels, label)
				}
			}
			sortVolumes(want)
			sortVolumes(got)
			if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
				t.Fatalf("objects (-kustomize +helm):\n%s", diff)
			}
			for k, o := range want {
				if diff := cmp.Diff(o, got[k]); diff != "" {
					t.Errorf("%s (-kustomize +helm):\n%s", k, diff)
				}
			}
		})
	}
}

// TestRules checks that the chart has the rules of artifacts/monitoring, and so has the
// kustomization, which renders the same.
func TestRules(t *testing.T) {
	want, err := os.ReadFile(root + "/artifacts/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(chart + "/files/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Error("the chart has other rules than artifacts/monitoring: run make update-manifests")
	}
}

// sortVolumes sorts volumes and mounts by name. Their order depends on the
// patches and has no meaning.
func sortVolumes(all objects) {
	for _, w := range workloads(all) {
		slices.SortFunc(w.pod.Spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
		for _, c := range w.pod.Spec.Containers {
			slices.SortFunc(c.VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.Name, b.Name) })
		}
	}
}

// TestChartInAnotherNamespace checks that the default namespace is not in the
// output if the chart is installed into another one.
func TestChartInAnotherNamespace(t *testing.T) {
	rendered := helm(t, valuesOf("everything"), "--namespace=elsewhere")
	for line := range bytes.Lines(rendered) {
		if bytes.Contains(line, []byte(namespace)) {
			t.Errorf("%s", line)
		}
	}
	checkReferences(t, decode(t, rendered), "elsewhere")
}

// TestChartInKubeSystem checks that no two objects have one name if the chart is installed
// into kube-system, and that the other Pods there are not limited.
func TestChartInKubeSystem(t *testing.T) {
	rendered, err := run(t.Context(), filepath.Join(tools, "helm"), "template", "release", chart, "--kube-version="+kubeVersion, "--namespace=kube-system")
	if err != nil {
		t.Fatal(err)
	}
	each(decode(t, rendered), func(quota *corev1.ResourceQuota) {
		t.Errorf("the ResourceQuota %s also limits Pods of the cluster", quota.Name)
	})
}

// TestChartRejectsInvalidValues checks that rendering fails for values that
// cannot work.
func TestChartRejectsInvalidValues(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--set=nonsense=1"}, "nonsense"},
		{[]string{"--set=apiserver.nonsense=1"}, "nonsense"},
		{[]string{"--set-string=apiserver.replicas=2"}, "replicas"},
		{[]string{"--set=apiserver.replicas=-1"}, "replicas"},
		{[]string{"--set=apiserver.extraArgs={v=2}"}, "extraArgs"},
		{[]string{"--set=image.pullPolicy=Sometimes"}, "pullPolicy"},
		{[]string{"--set=etcd.mode=embedded"}, "mode"},
		{[]string{"--set=etcd.members=2"}, "members"},
		{[]string{"--set=etcd.mode=external"}, "servers"},
		{[]string{"--set=etcd.mode=external", "--set=etcd.servers={http://etcd:2379}"}, "servers"},
		{[]string{"--set=etcd.servers={https://etcd:2379}"}, "servers"}, // would be ignored
		{[]string{"--set=certificates.mode=none"}, "mode"},
		{[]string{"--set=certificates.mode=secret"}, "caBundle"},
		{[]string{"--set=certificates.mode=secret", "--set=certificates.caBundle=LS0tLS1CRUdJTi"}, "caBundle"},
		{[]string{"--set=certificates.caBundle=-----BEGIN CERTIFICATE-----"}, "caBundle"}, // cainjector would replace it
		{[]string{"--set=certificates.duration=90d"}, "duration"},                         // the servers and the controller would not start
		{[]string{"--set=certificates.renewBefore=30d"}, "renewBefore"},
		{[]string{"--set=certificates.mode=cert-manager", "--set=certificates.duration=720h"}, "certificates.renewBefore 720h"},
		{[]string{"--set=etcd.certificates=cert-manager", "--set=certificates.duration=59m59s", "--set=certificates.renewBefore=10m"}, "at least 1h"},
		{[]string{"--set=certificates.mode=cert-manager", "--set=certificates.duration=1h", "--set=certificates.renewBefore=4m59s"}, "at least 1h and 5m"},
		{[]string{"--set=certificates.duration=29s"}, "at least 30s"},
		{[]string{"--set=etcd.clientSecretName=borough-etcd-tls"}, "different names"}, // one issuer would replace the other's
		{[]string{"--set=certificates.secretName=borough-etcd-ca"}, "different names"},
		{[]string{"--set=serviceMonitor.enabled=maybe"}, "enabled"},
		{[]string{"--set=serviceMonitor.bearerTokenSecret.name=other"}, "key"},
		{[]string{"--set=networkPolicy.enabled=true"}, "from"},                                    // would admit all
		{[]string{`--set-json=networkPolicy.from=[{"ipBlock":{"cidr":"192.0.2.0/24"}}]`}, "from"}, // would be ignored
		{[]string{"--set=source.directory=/pods"}, "directory"},                                   // would be the root of the node
		{[]string{"--set=source.directory=pods/x"}, "directory"},
		{[]string{"--set=source.namespace=A"}, "namespace"},
		{[]string{"--kube-version=1.35.9"}, "kubeVersion"},
	} {
		_, err := template(t.Context(), tc.args...)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: got %v, want an error with %q", tc.args, err, tc.want)
		}
	}
}

// TestChartVersions checks that the labels are valid if the version of the chart has a
// digest, as Flux appends it, or is long.
func TestChartVersions(t *testing.T) {
	for _, version := range []string{"0.1.0+1a2b3c4d5e6f", "0.1.0-" + strings.Repeat("a", 48) + "-b"} {
		dir := t.TempDir()
		if _, err := run(t.Context(), filepath.Join(tools, "helm"), "package", chart, "--version="+version, "--destination="+dir); err != nil {
			t.Fatal(err)
		}
		rendered, err := run(t.Context(), filepath.Join(tools, "helm"), "template", "release", filepath.Join(dir, "borough-"+version+".tgz"), "--kube-version="+kubeVersion, valuesOf("everything"))
		if err != nil {
			t.Fatal(err)
		}
		for k, o := range decode(t, rendered) {
			for label, value := range o.GetLabels() {
				for _, problem := range validation.IsValidLabelValue(value) {
					t.Errorf("%s: label %s is %q: %s", k, label, value, problem)
				}
			}
		}
	}
}

// TestChartAsDependency checks that the values that a chart passes to its dependencies
// make no difference.
func TestChartAsDependency(t *testing.T) {
	if !bytes.Equal(helm(t), helm(t, "--set=enabled=true", "--set=global.other=value")) {
		t.Error("enabled or global makes a difference")
	}
}

// TestHelmTest checks that after helm test the Pod is left, and nothing else: Helm 3 reads
// its log only after it has deleted what is to be deleted. The Pod has the resources that
// policies require, and runs where the servers run.
func TestHelmTest(t *testing.T) {
	for k, o := range helmTest(t, `--set-json=apiserver={"nodeSelector":{"other":"label"},"tolerations":[{"key":"other","operator":"Exists"}]}`) {
		policy := o.GetAnnotations()["helm.sh/hook-delete-policy"]
		pod, isPod := o.(*corev1.Pod)
		if isPod {
			if len(pod.Spec.NodeSelector) != 1 || len(pod.Spec.Tolerations) != 1 {
				t.Errorf("%s has the node selector %v and the tolerations %v", k, pod.Spec.NodeSelector, pod.Spec.Tolerations)
			}
			if r := pod.Spec.Containers[0].Resources; len(r.Requests) != 2 || len(r.Limits) != 2 {
				t.Errorf("%s requests %v, with the limits %v", k, r.Requests, r.Limits)
			}
		}
		for _, outcome := range []string{"hook-succeeded", "hook-failed"} {
			if isPod == strings.Contains(policy, outcome) {
				t.Errorf("%s has the policy %s", k, policy)
			}
		}
	}
}

// helmTest returns the objects that helm test creates.
func helmTest(t *testing.T, args ...string) objects {
	t.Helper()
	args = append([]string{"template", "release", chart, "--namespace=borough-system", "--kube-version=" + kubeVersion, "--show-only=templates/tests/doctor.yaml"}, args...)
	rendered, err := run(t.Context(), filepath.Join(tools, "helm"), args...)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, rendered)
}

// TestChartValues checks that changing any value of the chart changes the output,
// and that README.md documents the value. A value that is not in the table fails
// the test, so that none is forgotten.
func TestChartValues(t *testing.T) {
	other := map[string]string{
		"image.registry":                   `"registry.example.com/"`,
		"image.tag":                        `"other"`,
		"image.pullPolicy":                 `"Always"`,
		"image.pullSecrets":                `[{"name":"other"}]`,
		"priorityClassName":                `""`,
		"etcd.mode":                        "", // in testdata
		"etcd.members":                     `1`,
		"etcd.certificates":                `"secret"`,
		"etcd.servers":                     "", // in testdata
		"etcd.clientSecretName":            `"other"`,
		"etcd.secretName":                  `"other"`,
		"etcd.image":                       `"other:1"`,
		"etcd.storage.size":                `"1Gi"`,
		"etcd.storage.className":           `"other"`,
		"etcd.quotaBackendBytes":           `2147483648`,
		"certificates.mode":                "", // in testdata
		"certificates.caBundle":            "", // in testdata
		"certificates.secretName":          `"other"`,
		"certificates.duration":            `"1000h"`,
		"certificates.renewBefore":         `"10h"`,
		"serviceMonitor.enabled":           "", // in testdata
		"serviceMonitor.interval":          `"10s"`,
		"serviceMonitor.labels":            `{"other":"label"}`,
		"serviceMonitor.bearerTokenSecret": `{"name":"other","key":"token"}`,
		"prometheusRule.enabled":           "", // in testdata
		"prometheusRule.labels":            `{"other":"label"}`,
		"networkPolicy.enabled":            "", // in testdata
		"networkPolicy.from":               `[{"namespaceSelector":{}}]`,
		"tenantRoles.enabled":              `false`,
		"projects.enabled":                 "", // in testdata
		"source.enabled":                   "", // in testdata
		"source.namespace":                 `"other"`,
		"source.directory":                 `"/other/pods"`,
	}
	for _, part := range []string{"apiserver", "source"} {
		other[part+".extraVolumes"] = `[{"name":"other","emptyDir":{}}]`
		other[part+".extraVolumeMounts"] = `[{"name":"tls","mountPath":"/other"}]`
	}
	for _, part := range []string{"apiserver", "controllerManager", "etcd", "source"} {
		for value, json := range map[string]string{
			"resources":                 `{"requests":{"cpu":"3"}}`,
			"extraArgs":                 `["--other=a: b"]`,
			"podAnnotations":            `{"other":"annotation"}`,
			"podLabels":                 `{"other":"label"}`,
			"nodeSelector":              `{"other":"label"}`,
			"tolerations":               `[{"key":"other","operator":"Exists"}]`,
			"affinity":                  `{"podAntiAffinity":{}}`,
			"topologySpreadConstraints": `[{"topologyKey":"other","maxSkew":1,"whenUnsatisfiable":"DoNotSchedule"}]`,
			"repository":                `"other"`,
			"replicas":                  `5`,
			"serviceAccountAnnotations": `{"other":"annotation"}`,
		} {
			if part == "source" && (value == "replicas" || value == "topologySpreadConstraints") {
				continue // of a DaemonSet
			}
			if part != "etcd" || value != "repository" && value != "replicas" && value != "serviceAccountAnnotations" {
				other[part+"."+value] = json
			}
		}
	}

	readme, err := os.ReadFile(chart + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	values, err := os.ReadFile(chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := yaml.UnmarshalStrict(values, &tree); err != nil {
		t.Fatal(err)
	}
	base := helm(t, valuesOf("everything"))
	leaves := leavesOf("", tree, func(path string) bool { _, ok := other[path]; return ok })
	if diff := cmp.Diff(slices.Sorted(maps.Keys(other)), slices.Sorted(slices.Values(leaves))); diff != "" {
		t.Errorf("values (-tested +in values.yaml):\n%s", diff)
	}
	for _, path := range leaves {
		if !bytes.Contains(readme, []byte("`"+path+"`")) {
			t.Errorf("README.md does not document %s", path)
		}
		json := other[path]
		if json == "" {
			continue
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			rendered := helm(t, valuesOf("everything"), fmt.Sprintf("--set-json=%s=%s", path, json))
			if bytes.Equal(base, rendered) {
				t.Errorf("%s makes no difference", json)
			}
			decode(t, rendered)
		})
	}
}

// leavesOf returns the paths of all values that are not maps, and of the maps for
// which ends returns true.
func leavesOf(prefix string, tree map[string]any, ends func(path string) bool) []string {
	var paths []string
	for name, value := range tree {
		path := prefix + name
		if below, ok := value.(map[string]any); ok && !ends(path) {
			paths = append(paths, leavesOf(path+".", below, ends)...)
		} else {
			paths = append(paths, path)
		}
	}
	return paths
}
