// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
)

const finalizer = "example.com/hold"

// content is what a backup and an upgrade must preserve: a Namespace with objects, and
// one that is Terminating, because of the finalizer of its Pod.
type content struct {
	client     tenancyv1.TenancyV1Interface
	live, held string
	want       contentState
}

type contentState struct {
	Namespace   *v1.Namespace
	LimitRanges []v1.LimitRange
	Pods, Held  []v1.Pod
}

func (s *site) createContent(t *testing.T) *content {
	t.Helper()
	ctx := t.Context()
	c := &content{client: s.tenancy(t, "").TenancyV1()}
	for _, name := range []*string{&c.live, &c.held} {
		ns, err := c.client.Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "borough-content-"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		*name = ns.Name
	}
	limits := &v1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
	}}}}
	if _, err := c.client.LimitRanges(c.live).Create(ctx, limits, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for namespace, pods := range map[string][]*v1.Pod{
		c.live: {harness.NewPod("a"), harness.NewPod("b"), harness.NewPod("c")},
		c.held: {harness.NewPod("held", finalizer)},
	} {
		for _, pod := range pods {
			if _, err := c.client.Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.client.Namespaces().Delete(ctx, c.held, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// The Pod gets a deletionTimestamp, and does not change any more.
	awaitTrue(t, "the Pod of "+c.held+" is being deleted", func(ctx context.Context) (bool, error) {
		pod, err := c.client.Pods(c.held).Get(ctx, "held", metav1.GetOptions{})
		return err == nil && pod.DeletionTimestamp != nil, err
	})
	c.want = c.state(t)
	return c
}

func (c *content) state(t *testing.T) (s contentState) {
	t.Helper()
	var err error
	if s.Namespace, err = c.client.Namespaces().Get(t.Context(), c.live, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	limits, err := c.client.LimitRanges(c.live).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.LimitRanges = limits.Items
	for namespace, into := range map[string]*[]v1.Pod{c.live: &s.Pods, c.held: &s.Held} {
		pods, err := c.client.Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		*into = pods.Items
	}
	return s
}

// check fails the test unless the content is the same, with UIDs and resourceVersions,
// and the termination continues. It deletes the content.
func (c *content) check(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	if diff := cmp.Diff(c.want, c.state(t)); diff != "" {
		t.Errorf("the content has changed (-want +got):\n%s", diff)
	}
	if _, err := c.client.Pods(c.held).Create(ctx, harness.NewPod("late"), metav1.CreateOptions{}); !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("create in a Namespace that is being deleted: got %v", err)
	}
	if _, err := c.client.Pods(c.held).Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.client.Namespaces().Delete(ctx, c.live, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{c.held, c.live} {
		awaitGone(t, "Namespace "+name, func(ctx context.Context) error {
			_, err := c.client.Namespaces().Get(ctx, name, metav1.GetOptions{})
			return err
		})
	}
}
