// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package warnings_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/corepod/warnings"
)

func TestForPod(t *testing.T) {
	annotated := func(keys ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Annotations = map[string]string{}
			for _, key := range keys {
				p.Annotations[key] = ""
			}
		}
	}
	ports := func(a, b corev1.ContainerPort) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Ports: []corev1.ContainerPort{a}}}
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{b}
		}
	}
	env := func(first, second corev1.EnvVar) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			first.Name, second.Name = "X", "X"
			p.Spec.Containers[0].Env = []corev1.EnvVar{first, second}
		}
	}
	volume := func(source corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} }
	}
	fraction := corev1.ResourceList{"memory": resource.MustParse("100m"), "ephemeral-storage": resource.MustParse("1500m"), "cpu": resource.MustParse("100m")}
	hides := []string{`spec.containers[0].env[1]: hides previous definition of "X", which may be dropped when using apply`}
	const seccomp = `: non-functional in v1.27+; use the "seccompProfile" field instead`

	for _, tc := range []struct {
		name string
		set  func(*corev1.Pod)
		want []string
	}{
		{"nothing", func(*corev1.Pod) {}, nil},
		{"a name that is no label", func(p *corev1.Pod) { p.Name = "a.b" }, []string{
			`metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]`,
		}},
		{"old node labels", func(p *corev1.Pod) {
			expressions := []corev1.NodeSelectorRequirement{{Key: "beta.kubernetes.io/os", Values: []string{"not a value"}}}
			p.Spec.NodeSelector = map[string]string{"node-role.kubernetes.io/master": "", "beta.kubernetes.io/arch": ""}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: expressions}},
				},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
					{Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "beta.kubernetes.io/os", Values: []string{"-"}}}}},
				},
			}}
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "failure-domain.beta.kubernetes.io/zone"}}
		}, []string{
			`spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use "kubernetes.io/arch" instead`,
			`spec.nodeSelector[node-role.kubernetes.io/master]: use "node-role.kubernetes.io/control-plane" instead`,
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead`,
			`spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead`,
			`spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values[0]: - is invalid, a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
			`spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
			`spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod`,
		}},
		{"terms without a selector", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{
				PodAffinity:     &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{}}},
				PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{}}, {}}},
			}
		}, []string{
			`spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: a null labelSelector results in matching no pod`,
			`spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[1].labelSelector: a null labelSelector results in matching no pod`,
		}},
		{"old annotations", annotated("scheduler.alpha.kubernetes.io/critical-pod", "security.alpha.kubernetes.io/sysctls", "security.alpha.kubernetes.io/unsafe-sysctls"), []string{
			`metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead`,
			`metadata.annotations[security.alpha.kubernetes.io/sysctls]: non-functional in v1.11+; use the "sysctls" field instead`,
			`metadata.annotations[security.alpha.kubernetes.io/unsafe-sysctls]: non-functional in v1.11+; use the "sysctls" field instead`,
		}},
		{"seccomp annotations", annotated("seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/c", "container.seccomp.security.alpha.kubernetes.io/other"), []string{
			`metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]` + seccomp,
			`metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]` + seccomp,
		}},
		{"seccomp annotations and fields", func(p *corev1.Pod) {
			annotated("seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/c")(p)
			p.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{}}
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{}}
		}, nil},
		{"image pull secrets", func(p *corev1.Pod) {
			p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}, {}, {Name: "s"}}
		}, []string{
			`spec.imagePullSecrets[2].name: duplicate name "s"`,
			`spec.imagePullSecrets[1].name: invalid empty name ""`,
		}},
		{"host aliases and nameservers", func(p *corev1.Pod) {
			p.Spec.HostAliases = []corev1.HostAlias{{IP: "1.2.3.4"}, {IP: "1.2.3.4"}, {IP: "::ffff:1.2.3.4"}}
			p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"2001:DB8::1"}}
		}, []string{
			`spec.hostAliases[1].ip: duplicate ip "1.2.3.4"`,
			`spec.dnsConfig.nameservers[0]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")`,
			`spec.hostAliases[2].ip: non-standard IP address "::ffff:1.2.3.4" is invalid: use "1.2.3.4"`,
		}},
		{"fractions of bytes", func(p *corev1.Pod) {
			p.Spec.Overhead = fraction
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: fraction, Requests: fraction}
		}, []string{
			`spec.overhead[memory]: fractional byte value "100m" is invalid, must be an integer`,
			`spec.overhead[ephemeral-storage]: fractional byte value "1500m" is invalid, must be an integer`,
			`spec.containers[0].resources.limits[memory]: fractional byte value "100m" is invalid, must be an integer`,
			`spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer`,
			`spec.containers[0].resources.limits[ephemeral-storage]: fractional byte value "1500m" is invalid, must be an integer`,
			`spec.containers[0].resources.requests[ephemeral-storage]: fractional byte value "1500m" is invalid, must be an integer`,
		}},
		{"a variable defined again", env(corev1.EnvVar{Value: "a"}, corev1.EnvVar{Value: "b"}), hides},
		{"a variable defined as itself", env(corev1.EnvVar{Value: "a"}, corev1.EnvVar{Value: "$(X)"}), hides},
		{"a variable defined from elsewhere", env(corev1.EnvVar{Value: "a"}, corev1.EnvVar{ValueFrom: &corev1.EnvVarSource{}}), hides},
		{"a variable built on itself", env(corev1.EnvVar{Value: "a"}, corev1.EnvVar{Value: "$(X)b"}), nil},
		{"a host address without a port", ports(corev1.ContainerPort{}, corev1.ContainerPort{ContainerPort: 80, HostIP: "1.1.1.1"}), []string{
			`spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol: HostIP:1.1.1.1}`,
		}},
		{"the same port", ports(corev1.ContainerPort{ContainerPort: 80}, corev1.ContainerPort{ContainerPort: 80}), []string{
			`spec.containers[0].ports[0]: duplicate port definition with spec.initContainers[0].ports[0]`,
		}},
		{"a port with and without a host port", ports(corev1.ContainerPort{ContainerPort: 80, HostPort: 80}, corev1.ContainerPort{ContainerPort: 80}), []string{
			`spec.containers[0].ports[0]: overlapping port definition with spec.initContainers[0].ports[0]`,
		}},
		{"a port on one address and on all", ports(corev1.ContainerPort{ContainerPort: 80, HostPort: 80, HostIP: "1.1.1.1"}, corev1.ContainerPort{ContainerPort: 80, HostPort: 80}), []string{
			`spec.containers[0].ports[0]: dangerously ambiguous port definition with spec.initContainers[0].ports[0]`,
		}},
		{"ports of other protocols", ports(corev1.ContainerPort{ContainerPort: 80, Protocol: "TCP"}, corev1.ContainerPort{ContainerPort: 80, Protocol: "UDP"}), nil},
		{"ports on other host ports", ports(corev1.ContainerPort{ContainerPort: 80, HostPort: 80}, corev1.ContainerPort{ContainerPort: 80, HostPort: 81}), nil},
		{"the same port name", ports(corev1.ContainerPort{Name: "http", ContainerPort: 80}, corev1.ContainerPort{Name: "http", ContainerPort: 81}), []string{
			`spec.containers[0].ports[0]: duplicate port name "http" with spec.initContainers[0].ports[0], services and probes that select ports by name will use spec.initContainers[0].ports[0]`,
		}},
		{"less than no time to end", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(-1)) }, []string{
			"spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
		}},
		{"an old volume", volume(corev1.VolumeSource{GitRepo: &corev1.GitRepoVolumeSource{}}), []string{
			"spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
		}},
		{"a fraction of a claim", volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1m")}}},
		}}}), []string{
			`spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: fractional byte value "1m" is invalid, must be an integer`,
		}},
		{"keys in one place", volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "m"},
			Items:                []corev1.KeyToPath{{Path: "a"}, {Path: "a/b"}, {Path: "ab"}, {Path: "a/"}},
		}}), []string{
			`volume "v" (ConfigMap "m"): overlapping paths: "a/b" with "a"`,
			`volume "v" (ConfigMap "m"): overlapping paths: "a" with "a"`,
			`volume "v" (ConfigMap "m"): overlapping paths: "a" with "a/b"`,
		}},
		{"sources in one place", volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{},
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Items: []corev1.KeyToPath{{Path: "token"}}}},
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			{PodCertificate: &corev1.PodCertificateProjection{KeyPath: "token/key"}},
		}}}), []string{
			`volume "v" (Projected) has no sources provided`,
			`volume "v" (Projected): overlapping paths: "token" (ServiceAccountToken) with "token" (Secret "s")`,
			`volume "v" (Projected): overlapping paths: "token/key" (PodCertificate key) with "token" (Secret "s")`,
			`volume "v" (Projected): overlapping paths: "token/key" (PodCertificate key) with "token" (ServiceAccountToken)`,
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}},
			}
			tc.set(p)
			got := warnings.ForPod(p)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestForStatus(t *testing.T) {
	p := &corev1.Pod{Status: corev1.PodStatus{
		PodIPs:  []corev1.PodIP{{IP: "1.2.3.4"}, {IP: "2001:DB8::1"}},
		HostIPs: []corev1.HostIP{{IP: "::FF"}},
	}}
	want := []string{
		`status.podIPs[1].ip: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")`,
		`status.hostIPs[0].ip: IPv6 address "::FF" should be in RFC 5952 canonical format ("::ff")`,
	}
	got := warnings.ForStatus(&p.Status)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestLongTexts has long names in as many warnings as there can be.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	files := make([]corev1.KeyToPath, 200)
	for i := range files {
		files[i].Path = long
	}
	name := corev1.LocalObjectReference{Name: long}
	for kind, source := range map[string]corev1.VolumeSource{
		"configMap": {ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: name, Items: files}},
		"secret":    {Secret: &corev1.SecretVolumeSource{SecretName: long, Items: files}},
		"projected": {Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: name, Items: files}},
		}}},
		"no sources": {Projected: &corev1.ProjectedVolumeSource{Sources: make([]corev1.VolumeProjection, 200)}},
	} {
		t.Run(kind, func(t *testing.T) {
			p := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: long, VolumeSource: source}}}}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := warnings.ForPod(p)
			runtime.ReadMemStats(&after)
			if size := len(strings.Join(got, "")); len(got) != 100 || size > 1<<20 {
				t.Errorf("there are %d warnings with %d bytes", len(got), size)
			}
			if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 10<<20 {
				t.Errorf("%d bytes were allocated", bytes)
			}
		})
	}
}
