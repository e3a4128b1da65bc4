// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/corepod/defaults"
	"github.com/borough-io/borough/pkg/corepod/validation"
)

// podCase is one entry in testdata: what is done, to what, and every error
// that comes of it, with its path and its text.
type podCase struct {
	Name string
	// Op is create, update, status, resize or ephemeral. Empty means create.
	Op  string
	Pod corev1.Pod
	Old corev1.Pod
	// Bare Pods are taken as they are. To others a name, a namespace and a
	// container are added where they have none, and the defaults.
	Bare   bool
	Errors []string
}

func TestValidatePod(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test cases: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []podCase
		if err := yaml.UnmarshalStrict(data, &cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(cases) == 0 {
			t.Errorf("%s has no cases", file)
		}
		for _, test := range cases {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml")+"/"+test.Name, func(t *testing.T) {
				if !test.Bare {
					complete(scheme, &test.Pod)
					complete(scheme, &test.Old)
				}
				errs := validatePod(test.Op, test.Pod.DeepCopy(), test.Old.DeepCopy())
				if diff := cmp.Diff(test.Errors, messages(errs)); diff != "" {
					t.Errorf("errors (-want +got):\n%s", diff)
				}
				if test.Op != "" || len(test.Errors) > 0 {
					return
				}
				for _, op := range []string{"update", "status"} {
					pod := test.Pod.DeepCopy()
					if errs := validatePod(op, pod, pod.DeepCopy()); len(errs) > 0 {
						t.Errorf("%s of the valid Pod that changes nothing: %v", op, errs)
					}
				}
			})
		}
	}
}

func validatePod(op string, pod, old *corev1.Pod) field.ErrorList {
	if op != "" && op != "create" {
		pod.ResourceVersion, old.ResourceVersion = "1", "1"
	}
	switch op {
	case "", "create":
		return validation.ValidatePodCreate(pod)
	case "update":
		return validation.ValidatePodUpdate(pod, old)
	case "status":
		return validation.ValidatePodStatusUpdate(pod, old)
	case "resize":
		return validation.ValidatePodResize(pod, old)
	case "ephemeral":
		return validation.ValidatePodEphemeralContainersUpdate(pod, old)
	}
	panic("unknown op " + op)
}

// TestDifferences checks that the differences of all ephemeral containers together are shown
// up to a bound.
func TestDifferences(t *testing.T) {
	old := &corev1.Pod{}
	for i := range 4 {
		old.Spec.EphemeralContainers = append(old.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: fmt.Sprint("e", i), Command: slices.Repeat([]string{"a"}, 900)},
		})
	}
	pod := old.DeepCopy()
	for i := range pod.Spec.EphemeralContainers {
		pod.Spec.EphemeralContainers[i].Command[0] = "b"
	}
	var shown, notShown int
	for _, text := range messages(validatePod("ephemeral", pod, old)) {
		switch {
		case strings.Contains(text, "the difference is not shown: there are more than 2000 lines to compare"):
			notShown++
		case strings.Contains(text, `may not be changed`):
			shown++
		}
	}
	if shown != 2 || notShown != 2 {
		t.Errorf("%d differences are shown, %d are not", shown, notShown)
	}
}

func complete(scheme *runtime.Scheme, pod *corev1.Pod) {
	if pod.Name == "" {
		pod.Name, pod.Namespace = "p", "ns"
	}
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	}
	scheme.Default((*v1.Pod)(pod))
	defaults.PodResources(&pod.Spec)
}

func TestValidatePodBinding(t *testing.T) {
	for _, test := range []struct {
		name   string
		target corev1.ObjectReference
		want   []string
	}{
		{"to a node", corev1.ObjectReference{Kind: "Node", Name: "n"}, nil},
		{"to a node without saying so", corev1.ObjectReference{Name: "n"}, nil},
		{"to something else", corev1.ObjectReference{Kind: "Pod", Name: "n"}, []string{
			`target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"`}},
		{"to nothing", corev1.ObjectReference{}, []string{`target.name: Required value`}},
		{"to a node without a valid name", corev1.ObjectReference{Name: "n/x"}, []string{
			"target.name: Invalid value: \"n/x\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			errs := validation.ValidatePodBinding(&corev1.Binding{Target: test.target})
			if diff := cmp.Diff(test.want, messages(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func messages(errs field.ErrorList) []string {
	var msgs []string
	for _, err := range errs {
		msgs = append(msgs, err.Error())
	}
	return msgs
}
