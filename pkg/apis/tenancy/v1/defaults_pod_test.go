// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

func TestPodDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)

	// Every case starts from the Pod that an empty one becomes.
	empty := func() *v1.Pod {
		return &v1.Pod{Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyAlways,
			DNSPolicy:                     corev1.DNSClusterFirst,
			SchedulerName:                 "default-scheduler",
			SecurityContext:               &corev1.PodSecurityContext{},
			TerminationGracePeriodSeconds: new(int64(30)),
			EnableServiceLinks:            new(true),
		}}
	}
	container := func(modify func(*corev1.Container)) corev1.Container {
		c := corev1.Container{
			Name: "c", Image: "nginx:1",
			ImagePullPolicy:          corev1.PullIfNotPresent,
			TerminationMessagePath:   "/dev/termination-log",
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}
		modify(&c)
		return c
	}
	inContainers := func(modify func(*corev1.Container)) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) {
			for _, list := range []*[]corev1.Container{&spec.Containers, &spec.InitContainers} {
				c := corev1.Container{Name: "c", Image: "nginx:1"}
				modify(&c)
				*list = []corev1.Container{c}
			}
			c := corev1.Container{Name: "c", Image: "nginx:1"}
			modify(&c)
			spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(c)}}
		}
	}
	wantContainers := func(modify func(*corev1.Container)) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) {
			spec.Containers = []corev1.Container{container(modify)}
			spec.InitContainers = []corev1.Container{container(modify)}
			spec.EphemeralContainers = []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon(container(modify))},
			}
		}
	}
	resources := func(requests, limits corev1.ResourceList) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: requests, Limits: limits}
	}
	onContainer := func(r *corev1.ResourceRequirements) corev1.Container {
		return container(func(c *corev1.Container) { c.Resources = *r })
	}

	tests := []struct {
		name string
		set  func(*corev1.PodSpec)
		want func(*corev1.PodSpec)
	}{
		{"empty", func(*corev1.PodSpec) {}, func(*corev1.PodSpec) {}},
		{
			"what is set stays",
			func(s *corev1.PodSpec) {
				s.RestartPolicy, s.DNSPolicy, s.SchedulerName = "Never", "None", "mine"
				s.TerminationGracePeriodSeconds, s.EnableServiceLinks = new(int64(0)), new(false)
				s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(7))}
			},
			func(s *corev1.PodSpec) {
				s.RestartPolicy, s.DNSPolicy, s.SchedulerName = "Never", "None", "mine"
				s.TerminationGracePeriodSeconds, s.EnableServiceLinks = new(int64(0)), new(false)
				s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(7))}
			},
		},
		{
			"a negative grace period is the shortest",
			func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = new(int64(-5)) },
			func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = new(int64(1)) },
		},
		{
			"the deprecated service account stands in",
			func(s *corev1.PodSpec) { s.DeprecatedServiceAccount = "old" },
			func(s *corev1.PodSpec) { s.DeprecatedServiceAccount, s.ServiceAccountName = "old", "old" },
		},
		{
			"the deprecated service account follows",
			func(s *corev1.PodSpec) { s.DeprecatedServiceAccount, s.ServiceAccountName = "old", "new" },
			func(s *corev1.PodSpec) { s.DeprecatedServiceAccount, s.ServiceAccountName = "new", "new" },
		},
		{
			"containers of every kind",
			inContainers(func(*corev1.Container) {}),
			wantContainers(func(*corev1.Container) {}),
		},
		{
			"ports, probes, hooks and variables of containers of every kind",
			inContainers(func(c *corev1.Container) {
				c.Ports = []corev1.ContainerPort{{ContainerPort: 80}}
				c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{}}}
				c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 7, ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{}}}
				c.StartupProbe = &corev1.Probe{}
				c.Lifecycle = &corev1.Lifecycle{
					PostStart: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/up"}},
					PreStop:   &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Scheme: "HTTPS"}},
				}
				c.Env = []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{
					FieldRef: &corev1.ObjectFieldSelector{}, FileKeyRef: &corev1.FileKeySelector{},
				}}}
				c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1500u")}
				c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1u")}
			}),
			wantContainers(func(c *corev1.Container) {
				c.Ports = []corev1.ContainerPort{{ContainerPort: 80, Protocol: "TCP"}}
				c.LivenessProbe = &corev1.Probe{
					TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
					ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Scheme: "HTTP"}},
				}
				c.ReadinessProbe = &corev1.Probe{
					TimeoutSeconds: 1, PeriodSeconds: 7, SuccessThreshold: 1, FailureThreshold: 3,
					ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Service: new("")}},
				}
				c.StartupProbe = &corev1.Probe{TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3}
				c.Lifecycle = &corev1.Lifecycle{
					PostStart: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/up", Scheme: "HTTP"}},
					PreStop:   &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Scheme: "HTTPS"}},
				}
				c.Env = []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{
					FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1"}, FileKeyRef: &corev1.FileKeySelector{Optional: new(false)},
				}}}
				c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("2m")}
				c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1m")}
			}),
		},
		{
			"host network sets the host ports",
			func(s *corev1.PodSpec) {
				s.HostNetwork = true
				s.Containers = []corev1.Container{container(func(c *corev1.Container) {
					c.Ports = []corev1.ContainerPort{{ContainerPort: 80, Protocol: "UDP"}, {ContainerPort: 81, HostPort: 82, Protocol: "TCP"}}
				})}
			},
			func(s *corev1.PodSpec) {
				s.HostNetwork = true
				s.Containers = []corev1.Container{container(func(c *corev1.Container) {
					c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: "UDP"}, {ContainerPort: 81, HostPort: 82, Protocol: "TCP"}}
				})}
			},
		},
		{
			"a missing request takes the limit, but not in an ephemeral container",
			func(s *corev1.PodSpec) {
				r := resources(corev1.ResourceList{"memory": resource.MustParse("1Mi")},
					corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("2Mi")})
				s.Containers = []corev1.Container{onContainer(r.DeepCopy())}
				s.InitContainers = []corev1.Container{onContainer(resources(nil, r.Limits.DeepCopy()))}
				s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(onContainer(r.DeepCopy()))}}
			},
			func(s *corev1.PodSpec) {
				limits := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("2Mi")}
				s.Containers = []corev1.Container{onContainer(resources(
					corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Mi")}, limits))}
				s.InitContainers = []corev1.Container{onContainer(resources(limits, limits))}
				s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(
					onContainer(resources(corev1.ResourceList{"memory": resource.MustParse("1Mi")}, limits)))}}
			},
		},
		{
			"resources of the pod, which are completed when all containers are known",
			func(s *corev1.PodSpec) {
				s.Resources = resources(nil, corev1.ResourceList{"cpu": resource.MustParse("4")})
				s.Containers = []corev1.Container{onContainer(resources(corev1.ResourceList{"cpu": resource.MustParse("1")}, nil))}
			},
			func(s *corev1.PodSpec) {
				s.Resources = resources(nil, corev1.ResourceList{"cpu": resource.MustParse("4")})
				s.Containers = []corev1.Container{onContainer(resources(corev1.ResourceList{"cpu": resource.MustParse("1")}, nil))}
			},
		},
		{
			"volumes",
			func(s *corev1.PodSpec) {
				s.Volumes = []corev1.Volume{
					{Name: "none"},
					{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/p"}}},
					{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}},
					{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{DefaultMode: new(int32(0o400))}}},
					{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
					{VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
						Items: []corev1.DownwardAPIVolumeFile{{FieldRef: &corev1.ObjectFieldSelector{}}},
					}}},
					{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
						{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
						{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{FieldRef: &corev1.ObjectFieldSelector{}}}}},
					}}}},
					{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "data"}}},
					{VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}},
					{VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}}},
				}
			},
			func(s *corev1.PodSpec) {
				s.Volumes = []corev1.Volume{
					{Name: "none", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
					{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/p", Type: new(corev1.HostPathUnset)}}},
					{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{DefaultMode: new(int32(0o644))}}},
					{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{DefaultMode: new(int32(0o400))}}},
					{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{DefaultMode: new(int32(0o644))}}},
					{VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
						DefaultMode: new(int32(0o644)),
						Items:       []corev1.DownwardAPIVolumeFile{{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1"}}},
					}}},
					{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(0o644)), Sources: []corev1.VolumeProjection{
						{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3600))}},
						{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1"}}}}},
					}}}},
					{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "data", PullPolicy: corev1.PullAlways}}},
					{VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
						Spec: corev1.PersistentVolumeClaimSpec{VolumeMode: new(corev1.PersistentVolumeFilesystem)},
					}}}},
					{VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{ISCSIInterface: "default"}}},
				}
			},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, want := &v1.Pod{}, empty()
			tc.set(&got.Spec)
			tc.want(&want.Spec)
			scheme.Default(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("defaulted pod (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzPodDefaultsAreIdempotent shows that what comes out of storage is not
// changed again by the defaulting of a decode.
func FuzzPodDefaultsAreIdempotent(f *testing.F) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	for seed := range int64(200) {
		f.Add(seed)
	}
	quantities := []string{"0", "1n", "1500u", "0.5", "1", "100m", "1Gi"}
	resourceNames := []corev1.ResourceName{"cpu", "memory", "hugepages-2Mi", "hugepages-1Gi", "ephemeral-storage", "example.com/gpu"}

	f.Fuzz(func(t *testing.T, seed int64) {
		filler := randfill.New().RandSource(rand.NewSource(seed)).NilChance(0.5).NumElements(0, 3).MaxDepth(12).Funcs(
			func(q *resource.Quantity, c randfill.Continue) {
				*q = resource.MustParse(quantities[c.Intn(len(quantities))])
			},
			func(name *corev1.ResourceName, c randfill.Continue) {
				*name = resourceNames[c.Intn(len(resourceNames))]
			},
		)
		once := &v1.Pod{}
		filler.Fill(&once.Spec)
		filler.Fill(&once.Status)
		scheme.Default(once)
		twice := once.DeepCopy()
		scheme.Default(twice)
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Errorf("the second defaulting changed the pod (-once +twice):\n%s", diff)
		}
	})
}
