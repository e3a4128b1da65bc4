// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/corepod/validation"
)

// validPod is the smallest that is valid, with its defaults.
func validPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", ResourceVersion: "1"},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyAlways,
			DNSPolicy:                     corev1.DNSClusterFirst,
			TerminationGracePeriodSeconds: new(int64(30)),
			Containers: []corev1.Container{{
				Name:                     "c",
				Image:                    "i",
				ImagePullPolicy:          corev1.PullAlways,
				TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			}},
		},
	}
}

// TestValidatePodSizes puts what is limited in size once to its limit and once
// beyond it.
func TestValidatePodSizes(t *testing.T) {
	rule := func(codes int) corev1.ContainerRestartRule {
		return corev1.ContainerRestartRule{
			Action: corev1.ContainerRestartRuleActionRestart,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
				Operator: corev1.ContainerRestartRuleOnExitCodesOpIn,
				Values:   make([]int32, codes),
			},
		}
	}
	never := new(corev1.ContainerRestartPolicyNever)
	windows := func(pod *corev1.Pod, options corev1.WindowsSecurityContextOptions) {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &options}
	}
	for _, test := range []struct {
		name  string
		limit int
		grow  func(pod *corev1.Pod, n int)
		want  string
	}{
		{"restart rules", 20, func(pod *corev1.Pod, n int) {
			pod.Spec.Containers[0].RestartPolicy = never
			pod.Spec.Containers[0].RestartPolicyRules = slices.Repeat([]corev1.ContainerRestartRule{rule(1)}, n)
		}, "spec.containers[0].restartPolicyRules: Too many: 21: must have at most 20 items"},
		{"exit codes", 255, func(pod *corev1.Pod, n int) {
			pod.Spec.Containers[0].RestartPolicy = never
			pod.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{rule(n)}
		}, "spec.containers[0].restartPolicyRules[0].exitCodes.values: Too many: 256: must have at most 255 items"},
		{"name servers", 3, func(pod *corev1.Pod, n int) {
			pod.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: slices.Repeat([]string{"10.0.0.1"}, n)}
		}, `spec.dnsConfig.nameservers: Invalid value: ["10.0.0.1","10.0.0.1","10.0.0.1","10.0.0.1"]: must not have more than 3 nameservers`},
		{"search paths", 32, func(pod *corev1.Pod, n int) {
			pod.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: slices.Repeat([]string{"a"}, n)}
		}, `spec.dnsConfig.searches: Invalid value: [` + strings.Repeat(`"a",`, 32) + `"a"]: must not have more than 32 search paths`},
		{"host name", 64, func(pod *corev1.Pod, n int) {
			pod.Spec.HostnameOverride = new("a." + strings.Repeat("b", n-2))
		}, "spec.hostnameOverride: Too long: may not be more than 64 bytes"},
		{"csi driver", 63, func(pod *corev1.Pod, n int) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				CSI: &corev1.CSIVolumeSource{Driver: strings.Repeat("a", n)}}}}
		}, "spec.volumes[0].csi.driver: Too long: may not be more than 63 bytes"},
		{"apparmor profile", 4095, func(pod *corev1.Pod, n int) {
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{AppArmorProfile: &corev1.AppArmorProfile{
				Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: new(strings.Repeat("a", n))}}
		}, "spec.securityContext.appArmorProfile.localhostProfile: Too long: may not be more than 4095 bytes"},
		{"sysctl", 253, func(pod *corev1.Pod, n int) {
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: strings.Repeat("a", n)}}}
		}, `spec.securityContext.sysctls[0].name: Invalid value: "` + strings.Repeat("a", 254) +
			`": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`},
		{"credential spec", 64 * 1024, func(pod *corev1.Pod, n int) {
			windows(pod, corev1.WindowsSecurityContextOptions{GMSACredentialSpec: new(strings.Repeat("a", n))})
		}, `spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "` + strings.Repeat("a", 64*1024+1) +
			`": gmsaCredentialSpec size must be under 64 KiB`},
		{"windows user", 104, func(pod *corev1.Pod, n int) {
			windows(pod, corev1.WindowsSecurityContextOptions{RunAsUserName: new(strings.Repeat("a", n))})
		}, `spec.securityContext.windowsOptions.runAsUserName: Invalid value: "` + strings.Repeat("a", 105) +
			`": runAsUserName's User length must not be longer than 104 characters`},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := validPod()
			test.grow(pod, test.limit)
			if errs := validation.ValidatePodCreate(pod); len(errs) > 0 {
				t.Errorf("errors at the limit: %v", errs)
			}
			test.grow(pod, test.limit+1)
			if diff := cmp.Diff([]string{test.want}, messages(validation.ValidatePodCreate(pod))); diff != "" {
				t.Errorf("errors beyond the limit (-want +got):\n%s", diff)
			}
		})
	}
}
