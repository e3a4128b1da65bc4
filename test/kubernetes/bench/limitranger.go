// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/harness"
)

// limitRangers are the programs that measure the plugin of each side by itself.
// hack/bench.sh builds them; test/limitranger is Borough's.
var limitRangers = []struct{ side, program string }{
	{kube, "limitranger-kubernetes"},
	{borough, "limitranger-borough"},
}

// admission is the input of such a program.
type admission struct {
	LimitRanges        []corev1.LimitRange
	Pod                corev1.Pod
	Namespaces, InTurn int
}

// admitted is its output.
type admitted struct {
	Seconds, Allocations float64
	Pod                  corev1.Pod
	Memory               float64
}

// measureLimitRanger makes both plugins admit the same Pods.
func (b *bench) measureLimitRanger(ctx context.Context, round int) error {
	for _, complete := range []bool{false, true} {
		for _, containers := range []int{1, 10} {
			for _, limitRanges := range []int{1, 5} {
				row := fmt.Sprintf("%s, %s", count(containers, "container"), count(limitRanges, "LimitRange"))
				if complete {
					row = "Nothing to set, " + row
				}
				if err := b.compareLimitRangers(ctx, round, row, newAdmission(containers, limitRanges, complete)); err != nil {
					return err
				}
			}
		}
	}
	return b.measureManyLimitRanges(ctx)
}

func (b *bench) compareLimitRangers(ctx context.Context, round int, row string, work admission) error {
	var pods [2]corev1.Pod
	for i := range limitRangers {
		at := (i + round) % len(limitRangers)
		side := limitRangers[at].side
		out, err := admit(ctx, limitRangers[at].program, work)
		if err != nil {
			return err
		}
		pods[at] = out.Pod
		figures := []figure{
			{row: row, unit: seconds, value: out.Seconds},
			{row: row + ": allocations", unit: counted, value: out.Allocations},
		}
		if kept := inPod(&out.Pod, &work.Pod); kept > 0 {
			figures = append(figures, figure{row: row + ": allocations besides the Pod's own", unit: counted, value: out.Allocations - kept})
		}
		b.limitRanger.add(side, figures)
	}
	if !equality.Semantic.DeepEqual(pods[0].Annotations, pods[1].Annotations) || !equality.Semantic.DeepEqual(pods[0].Spec.Containers, pods[1].Spec.Containers) {
		return fmt.Errorf("%s: the two plugins have made different Pods: %v %v and %v %v", row,
			pods[0].Annotations, pods[0].Spec.Containers, pods[1].Annotations, pods[1].Spec.Containers)
	}
	return nil
}

// measureManyLimitRanges measures how the number of Namespaces with LimitRanges
// affects the admission of a Pod.
func (b *bench) measureManyLimitRanges(ctx context.Context) error {
	for _, world := range []struct {
		row                string
		namespaces, inTurn int
	}{
		{"A Pod in the only Namespace", 1, 1},
		{fmt.Sprintf("A Pod in one of %s Namespaces", number(b.size.limited)), b.size.limited, 1},
		{fmt.Sprintf("Pods in each of %s Namespaces in turn", number(b.size.limited)), b.size.limited, b.size.limited},
	} {
		work := newAdmission(1, 1, true)
		work.Namespaces, work.InTurn = world.namespaces, world.inTurn
		out, err := admit(ctx, limitRangers[1].program, work)
		if err != nil {
			return err
		}
		figures := []figure{{row: world.row, unit: seconds, value: out.Seconds}}
		if world.inTurn > 1 {
			figures = append(figures, figure{row: fmt.Sprintf("Memory for each of %s LimitRanges, one a Namespace", number(world.namespaces)), unit: bytesUnit, value: out.Memory})
		}
		b.limitRanger.add(borough, figures)
	}
	return nil
}

// newAdmission makes a Pod that specifies all or none of its resources.
func newAdmission(containers, limitRanges int, complete bool) admission {
	work := admission{Namespaces: 1, InTurn: 1, Pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "namespace-0"}}}
	for i := range containers {
		c := corev1.Container{Name: fmt.Sprintf("container-%d", i), Image: "registry.example/app:1.0"}
		if complete {
			c.Resources = corev1.ResourceRequirements{Requests: quantities("100m", "64Mi"), Limits: quantities("200m", "128Mi")}
		}
		work.Pod.Spec.Containers = append(work.Pod.Spec.Containers, c)
	}
	for i := range limitRanges {
		work.LimitRanges = append(work.LimitRanges, corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("limits-%d", i)},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
				{
					Type: corev1.LimitTypeContainer,
					Min:  quantities("10m", "16Mi"), Max: quantities("4", "8Gi"),
					Default: quantities("500m", "256Mi"), DefaultRequest: quantities("100m", "64Mi"),
				},
				{Type: corev1.LimitTypePod, Max: quantities("64", "128Gi")},
			}},
		})
	}
	return work
}

func quantities(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// admit runs a program.
func admit(ctx context.Context, program string, work admission) (admitted, error) {
	input, err := json.Marshal(work)
	if err != nil {
		return admitted{}, fmt.Errorf("encode the input of %s: %w", program, err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(harness.Root, ".cache", "tools", program), "-test.benchtime=200ms")
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &errs
	output, err := cmd.Output()
	if err != nil {
		return admitted{}, fmt.Errorf("run %s: %w\n%s", program, err, errs.Bytes())
	}
	var out admitted
	if err := json.Unmarshal(output, &out); err != nil {
		return admitted{}, fmt.Errorf("decode the output of %s: %w", program, err)
	}
	out.Allocations = math.Round(out.Allocations) // fractions are those of the program itself
	return out, nil
}

// inPod returns the number of allocations for the defaults that were set in the
// Pod, which any implementation needs: maps for the resources of each
// container, and the annotation.
func inPod(after, before *corev1.Pod) float64 {
	var made metav1.ObjectMeta
	var resources corev1.ResourceRequirements
	return testing.AllocsPerRun(100, func() {
		made.Annotations = nil
		for name, text := range after.Annotations {
			metav1.SetMetaDataAnnotation(&made, name, strings.Clone(text))
		}
		for i := range after.Spec.Containers {
			if before.Spec.Containers[i].Resources.Limits == nil {
				after.Spec.Containers[i].Resources.DeepCopyInto(&resources)
			}
		}
	})
}

// shareOfLimitRanger creates Pods and reads from the server's metrics which
// share of the time its LimitRanger took.
func shareOfLimitRanger(ctx context.Context, s *side, size size) ([]figure, error) {
	namespace, err := s.newNamespace(ctx)
	if err != nil {
		return nil, err
	}
	c, err := s.client(0)
	if err != nil {
		return nil, err
	}
	before, err := c.timeSpent(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.fill(ctx, 1, size.create, namespace); err != nil {
		return nil, err
	}
	after, err := c.timeSpent(ctx)
	if err != nil {
		return nil, err
	}
	return []figure{{row: shareRow, unit: share, value: (after.limitRanger - before.limitRanger) / (after.pods - before.pods)}}, nil
}

// timeSpent is the time that a server took to create Pods, and its
// LimitRanger's part of it, in seconds.
type timeSpent struct{ pods, limitRanger float64 }

func (c *client) timeSpent(ctx context.Context) (timeSpent, error) {
	var spent timeSpent
	err := c.metrics(ctx, func(name, labels string, value float64) {
		switch {
		case name == "apiserver_request_duration_seconds_sum" && strings.Contains(labels, `resource="pods",`) && strings.Contains(labels, `verb="POST"`):
			spent.pods += value
		case name == "apiserver_admission_controller_admission_duration_seconds_sum" && strings.Contains(labels, `name="LimitRanger"`):
			spent.limitRanger += value
		}
	})
	return spent, err
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
