// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/corepod/prepare"
	"github.com/borough-io/borough/pkg/corepod/validation"
	"github.com/borough-io/borough/pkg/requestlimits"
)

// TestCostOfTwoParts prepares and validates Pods with a long text and a long list, whose product
// would be much more than their sum. The race detector makes regular expressions allocate more.
func TestCostOfTwoParts(t *testing.T) {
	const (
		length   = 200_000
		elements = 5_000
		bound    = 800 << 20 // bytes; the products are 1,000,000,000 of something
	)
	long := strings.Repeat("a", length)
	for name, pod := range map[string]func(*corev1.Pod){
		"name and ephemeral volumes": func(pod *corev1.Pod) {
			pod.Name = long
			for i := range elements {
				pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
			}
		},
		"name of a claim and references": func(pod *corev1.Pod) {
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: long}}
			for range elements {
				pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: "b"})
			}
		},
		"names of claims and references": func(pod *corev1.Pod) {
			for i := range 100 {
				pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprintf("%060d", i)})
			}
			for range 10 * elements {
				pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: "b"})
			}
		},
		"value of a label and keys": func(pod *corev1.Pod) {
			pod.Labels = map[string]string{"a": long}
			constraint := corev1.TopologySpreadConstraint{LabelSelector: &metav1.LabelSelector{}}
			for range elements {
				constraint.MatchLabelKeys = append(constraint.MatchLabelKeys, "a")
			}
			pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{constraint}
		},
		"resources of a sidecar and init containers": func(pod *corev1.Pod) {
			list := corev1.ResourceList{}
			for i := range elements {
				list[corev1.ResourceName(fmt.Sprint("example.com/", i))] = resource.MustParse("1")
			}
			pod.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}}
			pod.Spec.InitContainers = []corev1.Container{{
				Name: "sidecar", Image: "i", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
				Resources: corev1.ResourceRequirements{Limits: list, Requests: list},
			}}
			for i := range 900 {
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: fmt.Sprint("i", i), Image: "i"})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
			pod(p)
			var errs field.ErrorList
			got := allocated(func() {
				prepare.ForCreate(context.Background(), p)
				errs = requestlimits.LimitErrors(validation.ValidatePodCreate(p))
			})
			if got > bound {
				t.Errorf("allocated %d bytes", got)
			}
			if len(errs) == 0 {
				t.Error("got no errors")
			}
			for _, constraint := range p.Spec.TopologySpreadConstraints {
				if n := len(constraint.LabelSelector.MatchExpressions); n > 0 { // a regular expression each
					t.Errorf("the selector has %d times the value of the label", n)
				}
			}
		})
	}
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestLongClaimName checks that the name of an extended claim is not repeated for each request.
func TestLongClaimName(t *testing.T) {
	old := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	}}}}
	pod := old.DeepCopy()
	claim := &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: strings.Repeat("x", 1<<20)}
	for i := range 1000 {
		claim.RequestMappings = append(claim.RequestMappings, corev1.ContainerExtendedResourceRequest{
			ContainerName: "c", ResourceName: "cpu", RequestName: fmt.Sprint("r", i),
		})
	}
	pod.Status.ExtendedResourceClaimStatus = claim
	var errs field.ErrorList
	if bytes := allocated(func() { errs = validatePod("status", pod, old) }); len(errs) == 0 || bytes > 200<<20 {
		t.Errorf("there are %d errors, and %d bytes were allocated", len(errs), bytes)
	}
}

// TestInitSums checks the bound on resources of sidecars, which a resize can add, too.
func TestInitSums(t *testing.T) {
	const refused = "spec.initContainers: Forbidden: must have at most 10000 resources of sidecars"
	for _, test := range []struct {
		name                        string
		sidecars, resources, others int
		want                        string
	}{
		{"before other init containers", 1, 10, 1000, ""},
		{"before too many others", 1, 11, 1000, refused},
		{"before sidecars", 63, 5, 0, ""}, // 62 * 63 / 2 * 5 = 9,765
		{"before too many sidecars", 64, 5, 0, refused},
	} {
		pod := podOfSidecars(test.sidecars, test.others, func(sidecar int, c *corev1.Container) {
			c.Resources.Limits = differentResources(sidecar, test.resources)
		})
		for op, errs := range map[string]field.ErrorList{
			"create": validation.ValidatePodCreate(pod),
			"resize": validation.ValidatePodResize(pod, &corev1.Pod{}),
		} {
			if got := errorOfSums(errs, "spec.initContainers"); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("%s, %s: got %q, want %q", op, test.name, got, test.want)
			}
		}
	}
	// Sidecars that all have the same resources cost no more than one.
	same := podOfSidecars(1000, 0, func(_ int, c *corev1.Container) { c.Resources.Limits = differentResources(0, 4) })
	if got := errorOfSums(validation.ValidatePodCreate(same), "spec.initContainers"); got != "" {
		t.Errorf("the same resources: %s", got)
	}
}

// TestInitSumsOfStatus checks the bound on resources of sidecars that a node reports.
func TestInitSumsOfStatus(t *testing.T) {
	const refused = "status.initContainerStatuses: Forbidden: must have at most 20000 resources of sidecars"
	for _, list := range []string{"allocated", "requests", "limits"} {
		for resources, want := range map[int]string{20: "", 21: refused} {
			old := podOfSidecars(1, 1000, func(int, *corev1.Container) {})
			pod := old.DeepCopy()
			status := corev1.ContainerStatus{Name: "s0", Resources: &corev1.ResourceRequirements{}}
			switch all := differentResources(0, resources); list {
			case "allocated":
				status.AllocatedResources = all
			case "requests":
				status.Resources.Requests = all
			case "limits":
				status.Resources.Limits = all
			}
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{status, {Name: "s0"}}
			if got := errorOfSums(validatePod("status", pod, old), "status.initContainerStatuses"); !strings.HasPrefix(got, want) || want == "" && got != "" {
				t.Errorf("%d resources, %s: got %q, want %q", resources, list, got, want)
			}
		}
	}
}

// TestInitSumsOfStored checks that a Pod that was stored with more than the bounds permit can
// be resized, and its node can report what it has, but no more.
func TestInitSumsOfStored(t *testing.T) {
	all := differentResources(0, 12)
	podWith := func(limits, reported corev1.ResourceList) *corev1.Pod {
		pod := podOfSidecars(1, 1000, func(_ int, c *corev1.Container) { c.Resources.Limits = limits })
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "s0", AllocatedResources: reported, Resources: &corev1.ResourceRequirements{Limits: reported}}}
		return pod
	}
	const path, statusPath = "spec.initContainers", "status.initContainerStatuses"
	for _, test := range []struct {
		name            string
		stored, more    *corev1.Pod
		operation, path string
	}{
		{"resources", podWith(all, nil), podWith(differentResources(0, 13), nil), "resize", path},
		{"reported of these resources", podWith(all, all), podWith(all, differentResources(0, 13)), "status", statusPath},
		{"reported of other resources", podWith(nil, all), podWith(nil, differentResources(0, 13)), "status", statusPath},
	} {
		if got := errorOfSums(validatePod(test.operation, test.stored, test.stored), test.path); got != "" {
			t.Errorf("%s: %s", test.name, got)
		}
		if got := errorOfSums(validatePod(test.operation, test.more, test.stored), test.path); got == "" {
			t.Errorf("%s: more than what is stored was accepted", test.name)
		}
	}
	if got := errorOfSums(validatePod("status", podWith(all, all), podWith(all, nil)), statusPath); got != "" {
		t.Errorf("first report of resources that are stored: %s", got)
	}
}

// podOfSidecars returns a Pod with sidecars, followed by other init containers.
func podOfSidecars(sidecars, others int, change func(sidecar int, c *corev1.Container)) *corev1.Pod {
	pod := &corev1.Pod{}
	for i := range sidecars {
		c := corev1.Container{Name: fmt.Sprint("s", i), RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}
		change(i, &c)
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	for i := range others {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: fmt.Sprint("i", i)})
	}
	return pod
}

// differentResources returns n resources that those of other numbers do not have.
func differentResources(number, n int) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := range n {
		list[corev1.ResourceName(fmt.Sprintf("example.com/%d-%d", number, i))] = resource.MustParse("1")
	}
	return list
}

func errorOfSums(errs field.ErrorList, path string) string {
	for _, err := range errs {
		if err.Field == path && strings.Contains(err.Detail, "sidecars") {
			return err.Error()
		}
	}
	return ""
}
