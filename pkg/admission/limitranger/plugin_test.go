// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	clienttesting "k8s.io/client-go/testing"

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/admission/limitranger"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
)

// TestWhatIsLimited shows which requests LimitRanges apply to.
func TestWhatIsLimited(t *testing.T) {
	deleted := newPod("9") // changed, or there would be nothing to limit
	deleted.DeletionTimestamp = &metav1.Time{}

	const yes, no = true, false
	for name, test := range map[string]struct {
		request func(*tenancy.Pod) admission.Attributes
		limited bool
	}{
		"create":           {create, yes},
		"create a binding": {func(p *tenancy.Pod) admission.Attributes { return podRequest(admission.Create, "binding", p, nil) }, no},
		"update":           {func(p *tenancy.Pod) admission.Attributes { return podRequest(admission.Update, "", p, newPod("9")) }, no},
		"update status": {func(p *tenancy.Pod) admission.Attributes {
			return podRequest(admission.Update, "status", p, newPod("9"))
		}, no},
		"update ephemeral containers": {func(p *tenancy.Pod) admission.Attributes {
			return podRequest(admission.Update, "ephemeralcontainers", p, newPod("9"))
		}, no},
		"resize": {func(p *tenancy.Pod) admission.Attributes {
			return podRequest(admission.Update, "resize", p, newPod("9"))
		}, yes},
		"resize that changes nothing": {func(p *tenancy.Pod) admission.Attributes {
			return podRequest(admission.Update, "resize", p, newPod())
		}, no},
		"resize what is being deleted": {func(p *tenancy.Pod) admission.Attributes {
			return podRequest(admission.Update, "resize", p, deleted)
		}, no},
		"create another kind": {func(p *tenancy.Pod) admission.Attributes {
			return admission.NewAttributesRecord(p, nil, v1.SchemeGroupVersion.WithKind("Other"), "ns", "x", v1.SchemeGroupVersion.WithResource("others"), "", admission.Create, nil, false, nil)
		}, no},
		"delete": {func(p *tenancy.Pod) admission.Attributes { return podRequest(admission.Delete, "", p, newPod()) }, no},
	} {
		t.Run(name, func(t *testing.T) {
			objects := objects(defaults("a"), limitRange("b", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: quantities("cpu", "5")}))
			plugin := newPlugin(t, fake.NewClientset(objects...), fake.NewClientset(objects...))

			pod := newPod()
			if err := plugin.Admit(t.Context(), test.request(pod), nil); err != nil {
				t.Fatal(err)
			}
			if mutated := len(pod.Spec.Containers[0].Resources.Limits) > 0; mutated != test.limited {
				t.Errorf("mutated: %t, want %t", mutated, test.limited)
			}
			if err := plugin.Validate(t.Context(), test.request(pod), nil); apierrors.IsForbidden(err) != test.limited {
				t.Errorf("forbidden: %v, want %t", err, test.limited)
			}
		})
	}
}

func TestAdmit(t *testing.T) {
	objects := objects(
		limitRange("b", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: quantities("cpu", "9", "example.com/gpu", "1")}),
		defaults("a"))
	plugin := newPlugin(t, fake.NewClientset(objects...), fake.NewClientset())

	pod := newPod("3")
	pod.Annotations = map[string]string{"other": "kept"}
	pod.Spec.InitContainers = []corev1.Container{{Name: "i"}}
	if err := plugin.Admit(t.Context(), create(pod), nil); err != nil {
		t.Fatal(err)
	}
	want := newPod()
	want.Annotations = map[string]string{
		"other": "kept",
		"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, memory request for container c; example.com/gpu, memory limit for container c; " +
			"cpu, memory request for init container i; cpu, example.com/gpu, memory limit for init container i",
	}
	requests := quantities("cpu", "1", "memory", "1Gi")
	want.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: quantities("cpu", "3", "memory", "2Gi", "example.com/gpu", "1")}
	want.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{
		Requests: requests, Limits: quantities("cpu", "2", "memory", "2Gi", "example.com/gpu", "1")}}}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	// Once more, as after another plugin has changed the Pod.
	if err := plugin.Admit(t.Context(), create(pod), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("the second time: -want +got\n%s", diff)
	}
}

func TestAdmitWithoutDefaults(t *testing.T) {
	objects := objects(maxCPU("a", "1"))
	plugin := newPlugin(t, fake.NewClientset(objects...), fake.NewClientset())
	pod := newPod("3")
	if err := plugin.Admit(t.Context(), create(pod), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(newPod("3"), pod); diff != "" {
		t.Errorf("the Pod has changed: -want +got\n%s", diff)
	}
}

func TestValidate(t *testing.T) {
	const forbidden = `pods.tenancy.borough.io "x" is forbidden: `
	minMemory := limitRange("b", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: quantities("memory", "1Gi")})
	both := limitRange("ab", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: quantities("cpu", "1"), Min: quantities("memory", "1Gi")})

	for name, test := range map[string]struct {
		limitRanges []*v1.LimitRange
		pod         *tenancy.Pod
		want        string
	}{
		"no limit ranges": {nil, newPod(), ""},
		"within bounds":   {[]*v1.LimitRange{maxCPU("a", "1")}, newPod("1"), ""},
		"one violation": {[]*v1.LimitRange{maxCPU("a", "1")}, newPod("2"),
			forbidden + `maximum cpu usage per Container is 1, but limit is 2`},
		"two violations": {[]*v1.LimitRange{both}, newPod("2"),
			forbidden + `[minimum memory usage per Container is 1Gi.  No request is specified, maximum cpu usage per Container is 1, but limit is 2]`},
		"one of two limit ranges": {[]*v1.LimitRange{minMemory, maxCPU("a", "3")}, newPod("2"),
			forbidden + `LimitRange "b": minimum memory usage per Pod is 1Gi.  No request is specified`},
		"both of two limit ranges": {[]*v1.LimitRange{minMemory, maxCPU("a", "1")}, newPod("2"),
			forbidden + `[LimitRange "a": maximum cpu usage per Container is 1, but limit is 2, LimitRange "b": minimum memory usage per Pod is 1Gi.  No request is specified]`},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := newPlugin(t, fake.NewClientset(objects(test.limitRanges...)...), fake.NewClientset())
			err := plugin.Validate(t.Context(), create(test.pod), nil)
			if got := message(err); got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
			if err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("%v is not a 403", err)
			}
		})
	}
}

// TestSameViolationTwice shows that containers that violate a bound alike are
// reported once.
func TestSameViolationTwice(t *testing.T) {
	objects := objects(maxCPU("a", "1"))
	plugin := newPlugin(t, fake.NewClientset(objects...), fake.NewClientset())
	pod := newPod("2")
	pod.Spec.Containers = append(pod.Spec.Containers, pod.Spec.Containers[0])
	want := `pods.tenancy.borough.io "x" is forbidden: maximum cpu usage per Container is 1, but limit is 2`
	if got := message(plugin.Validate(t.Context(), create(pod), nil)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestGeneratedName shows the name in the error for a Pod without a name yet.
func TestGeneratedName(t *testing.T) {
	objects := objects(maxCPU("a", "1"))
	plugin := newPlugin(t, fake.NewClientset(objects...), fake.NewClientset())
	pod := newPod("2")
	pod.Name, pod.GenerateName = "", "web-"
	request := admission.NewAttributesRecord(pod, nil, v1.SchemeGroupVersion.WithKind("Pod"), "ns", "",
		v1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil)
	want := `pods.tenancy.borough.io "web-" is forbidden: maximum cpu usage per Container is 1, but limit is 2`
	if got := message(plugin.Validate(t.Context(), request, nil)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestOrderOfCreation shows that LimitRanges give the same result in any
// order.
func TestOrderOfCreation(t *testing.T) {
	limitRanges := []*v1.LimitRange{maxCPU("c", "1"), defaults("b"), maxCPU("a", "500m")}
	outcome := func(order []int) string {
		cache := fake.NewClientset()
		for _, i := range order {
			if err := cache.Tracker().Add(limitRanges[i]); err != nil {
				t.Fatal(err)
			}
		}
		plugin, pod := newPlugin(t, cache, fake.NewClientset()), newPod()
		if err := plugin.Admit(t.Context(), create(pod), nil); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(pod.Annotations, pod.Spec.Containers[0].Resources, plugin.Validate(t.Context(), create(pod), nil))
	}
	want := outcome([]int{0, 1, 2})
	if !strings.Contains(want, `LimitRange "a"`) || !strings.Contains(want, `LimitRange "c"`) {
		t.Errorf("not all is reported: %s", want)
	}
	for _, order := range [][]int{{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		if got := outcome(order); got != want {
			t.Errorf("%v:\n got %s\nwant %s", order, got, want)
		}
	}
}

func TestBeforeTheCacheIsSynced(t *testing.T) {
	client := fake.NewClientset()
	plugin, err := initialize(externalversions.NewSharedInformerFactory(client, 0), client) // which is not started
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // or it would wait
	want := `pods.tenancy.borough.io "x" is forbidden: not yet ready to handle request`
	if got := message(plugin.Admit(ctx, create(newPod()), nil)); got != want {
		t.Errorf("Admit: got %q, want %q", got, want)
	}
	if got := message(plugin.Validate(ctx, create(newPod()), nil)); got != want {
		t.Errorf("Validate: got %q, want %q", got, want)
	}
}

func TestNotAPod(t *testing.T) {
	client := fake.NewClientset()
	plugin := newPlugin(t, client, client)
	request := admission.NewAttributesRecord(&tenancy.Binding{}, nil, v1.SchemeGroupVersion.WithKind("Pod"), "ns", "x",
		v1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil)
	if err := plugin.Admit(t.Context(), request, nil); !apierrors.IsInternalError(err) {
		t.Errorf("got %v", err)
	}
}

func TestValidateInitialization(t *testing.T) {
	client := fake.NewClientset()
	plugins := admission.NewPlugins()
	limitranger.Register(plugins)
	informersOnly := pluginInitializer(func(plugin admission.Interface) {
		plugin.(boroughadmission.WantsTenancyInformers).SetTenancyInformers(externalversions.NewSharedInformerFactory(client, 0))
	})
	clientOnly := pluginInitializer(func(plugin admission.Interface) {
		plugin.(boroughadmission.WantsTenancyClient).SetTenancyClient(client)
	})
	for _, test := range []struct {
		initializer admission.PluginInitializer
		want        string
	}{
		{informersOnly, "missing the client"},
		{clientOnly, "missing the informer of limit ranges"},
	} {
		_, err := plugins.InitPlugin(limitranger.PluginName, nil, test.initializer)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

type pluginInitializer func(admission.Interface)

func (f pluginInitializer) Initialize(plugin admission.Interface) { f(plugin) }

// lists counts how often LimitRanges were read from storage.
func lists(storage *fake.Clientset) int {
	return len(slices.DeleteFunc(slices.Clone(storage.Actions()), func(action clienttesting.Action) bool {
		return !action.Matches("list", "limitranges")
	}))
}

// TestUnreadable shows that no Pod is admitted in a Namespace with a LimitRange that
// cannot be read, because its limits still apply, also if it can be read again after the
// LimitRanges were read, or could be before. Other Namespaces are not affected.
func TestUnreadable(t *testing.T) {
	checks := 0
	plugin := newPlugin(t, fake.NewClientset(), fake.NewClientset())
	plugin.(boroughadmission.WantsUnreadable).SetUnreadable(func(resource schema.GroupResource, namespace string) []string {
		checks++
		if resource == tenancy.Resource("limitranges") && (namespace == "bad" || namespace == "before" && checks == 1 || namespace == "after" && checks == 2) {
			return []string{"lost"}
		}
		return nil
	})
	const unread = `limit range "lost" of namespace %q applies to the pod, but cannot be read from storage`
	for namespace, want := range map[string]string{
		"bad":    fmt.Sprintf(unread, "bad"),
		"before": fmt.Sprintf(unread, "before"),
		"after":  fmt.Sprintf(unread, "after"),
		"sound":  "",
	} {
		pod := newPod("1")
		pod.Namespace = namespace
		a := admission.NewAttributesRecord(pod, nil, v1.SchemeGroupVersion.WithKind("Pod"), namespace, pod.Name,
			v1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil)
		for name, attempt := range map[string]func() error{
			"Admit":    func() error { return plugin.Admit(t.Context(), a, nil) },
			"Validate": func() error { return plugin.Validate(t.Context(), a, nil) },
		} {
			checks = 0
			err := attempt()
			if want == "" && err != nil || want != "" && (!apierrors.IsInternalError(err) || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s in %s: got %v, want %q", name, namespace, err, want)
			}
		}
	}
}

// TestTooManyDefaults shows that a Pod that would get more defaults than are set in a Pod is
// rejected.
func TestTooManyDefaults(t *testing.T) {
	list := corev1.ResourceList{}
	for i := range 101 {
		list[corev1.ResourceName(fmt.Sprint("example.com/r", i))] = resource.MustParse("1")
	}
	objects := objects(limitRange("a", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: list}))
	plugin := newPlugin(t, fake.NewClientset(objects...), fake.NewClientset(objects...))
	pod := newPod()
	pod.Spec.Containers = make([]corev1.Container, 100)
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Name = fmt.Sprint("c", i)
	}
	if err := plugin.Admit(t.Context(), create(pod), nil); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "at most 10000 are set in a Pod") {
		t.Errorf("got %v", err)
	}
}
