// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
)

// These are the tenants of the test. The viewer has the cluster's role view in
// all namespaces; the editor has edit, and the chief admin, in the namespace of
// the team.
const (
	viewer = "viewer"
	editor = "editor"
	chief  = "chief"
	team   = "team"
)

// request is a tenant's request in the team's Namespace, which has a Pod and a
// LimitRange.
type request struct {
	name string
	make func(context.Context, tenancyv1.TenancyV1Interface) error
}

const (
	tenantPod    = "pod"
	tenantLimits = "limits"
	tenantQuota  = "quota"
)

// lookAround are reads that need rights in all Namespaces, lookInside reads
// that need them in the team's Namespace.
var (
	lookAround = []request{
		{"list namespaces", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			_, err := c.Namespaces().List(ctx, metav1.ListOptions{})
			return err
		}},
		{"watch namespaces", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			return once(c.Namespaces().Watch(ctx, metav1.ListOptions{}))
		}},
	}
	lookInside = []request{
		{"get a namespace", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			_, err := c.Namespaces().Get(ctx, team, metav1.GetOptions{})
			return err
		}},
		{"get the status of a namespace", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			return c.RESTClient().Get().Resource("namespaces").Name(team).SubResource("status").Do(ctx).Error()
		}},
		{"get a limitrange", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			_, err := c.LimitRanges(team).Get(ctx, tenantLimits, metav1.GetOptions{})
			return err
		}},
		{"list limitranges", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			_, err := c.LimitRanges(team).List(ctx, metav1.ListOptions{})
			return err
		}},
		{"watch limitranges", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			return once(c.LimitRanges(team).Watch(ctx, metav1.ListOptions{}))
		}},
		{"get a resourcequota", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			_, err := c.ResourceQuotas(team).Get(ctx, tenantQuota, metav1.GetOptions{})
			return err
		}},
		{"list resourcequotas", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			_, err := c.ResourceQuotas(team).List(ctx, metav1.ListOptions{})
			return err
		}},
		{"watch resourcequotas", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			return once(c.ResourceQuotas(team).Watch(ctx, metav1.ListOptions{}))
		}},
		{"get a pod", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			_, err := c.Pods(team).Get(ctx, tenantPod, metav1.GetOptions{})
			return err
		}},
		{"get the status of a pod", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			return c.RESTClient().Get().Namespace(team).Resource("pods").Name(tenantPod).SubResource("status").Do(ctx).Error()
		}},
		{"list pods", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			_, err := c.Pods(team).List(ctx, metav1.ListOptions{})
			return err
		}},
		{"watch pods", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			return once(c.Pods(team).Watch(ctx, metav1.ListOptions{}))
		}},
	}
	writePods = []request{
		{"create a pod", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			_, err := c.Pods(team).Create(ctx, harness.NewPod("other"), metav1.CreateOptions{})
			return err
		}},
		{"update a pod", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			pod := harness.NewPod(tenantPod)
			pod.Labels = map[string]string{"updated": "true"}
			_, err := c.Pods(team).Update(ctx, pod, metav1.UpdateOptions{})
			return err
		}},
		{"patch a pod", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			_, err := c.Pods(team).Patch(ctx, tenantPod, types.MergePatchType, []byte(`{"metadata":{"labels":{"patched":"true"}}}`), metav1.PatchOptions{})
			return err
		}},
		{"delete a pod", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			return c.Pods(team).Delete(ctx, "other", metav1.DeleteOptions{})
		}},
		{"delete all pods", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			return c.Pods(team).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		}},
	}
	// writeRest are writes that no tenant may make.
	writeRest = []request{
		{"create a limitrange", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			_, err := c.LimitRanges(team).Create(ctx, newLimits("other"), metav1.CreateOptions{})
			return err
		}},
		{"delete a limitrange", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			return c.LimitRanges(team).Delete(ctx, tenantLimits, metav1.DeleteOptions{})
		}},
		{"create a resourcequota", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			_, err := c.ResourceQuotas(team).Create(ctx, newQuota("other"), metav1.CreateOptions{})
			return err
		}},
		{"delete a resourcequota", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			return c.ResourceQuotas(team).Delete(ctx, tenantQuota, metav1.DeleteOptions{})
		}},
		{"delete a namespace", func(ctx context.Context, c tenancyv1.TenancyV1Interface) error {
			return c.Namespaces().Delete(ctx, team, metav1.DeleteOptions{})
		}},
	}
)

// once stops a watch that was started.
func once(w watch.Interface, err error) error {
	if err == nil {
		w.Stop()
	}
	return err
}

// bindTenants creates the team's Namespace and the cluster's namespace of the
// same name, and binds the tenants to the cluster's roles.
func (s *site) bindTenants(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{
		{"create", "namespace", team},
		{"create", "clusterrolebinding", viewer, "--clusterrole=view", "--user=" + viewer},
		{"create", "rolebinding", editor, "--clusterrole=edit", "--user=" + editor, "--namespace=" + team},
		{"create", "rolebinding", chief, "--clusterrole=admin", "--user=" + chief, "--namespace=" + team},
	} {
		s.kubectl.Run(t, args...)
	}
	client := s.tenancy(t)
	if _, err := client.Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.LimitRanges(team).Create(t.Context(), newLimits(tenantLimits), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ResourceQuotas(team).Create(t.Context(), newQuota(tenantQuota), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The cluster's controller aggregates the roles.
	s.awaitMay(t, append(s.grantsOf(t, viewer, role{name: "borough-view"}), s.grantsOf(t, editor, role{name: "borough-edit"})...), true)
}

// makeRequests makes requests as a tenant and fails the test unless all are
// allowed, or all are forbidden.
func (s *site) makeRequests(t *testing.T, user string, allowed bool, requests ...request) {
	t.Helper()
	for i, err := range s.tryRequests(t, user, requests...) {
		if allowed && err != nil || !allowed && !apierrors.IsForbidden(err) {
			t.Errorf("%s of the %s: got %v", requests[i].name, user, err)
		}
	}
}

// tryRequests makes requests as a tenant and returns their errors.
func (s *site) tryRequests(t *testing.T, user string, requests ...request) []error {
	t.Helper()
	ctx := t.Context()
	_, err := s.tenancy(t).Pods(team).Create(ctx, harness.NewPod(tenantPod), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	config, err := s.cluster.UserConfig(user)
	if err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var errs []error
	for _, r := range requests {
		errs = append(errs, r.make(ctx, client.TenancyV1()))
	}
	return errs
}

// testTenants checks that the cluster's roles include our kinds.
func (s *site) testTenants(t *testing.T) {
	s.bindTenants(t)
	s.makeRequests(t, viewer, true, slices.Concat(lookAround, lookInside)...)
	s.makeRequests(t, viewer, false, slices.Concat(writePods, writeRest)...)
	for _, user := range []string{editor, chief} {
		s.makeRequests(t, user, true, slices.Concat(lookInside, writePods)...)
		s.makeRequests(t, user, false, slices.Concat(lookAround, writeRest)...)
	}
}

func newQuota(name string, finalizers ...string) *v1.ResourceQuota {
	return &v1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1000")}},
	}
}

func newLimits(name string, finalizers ...string) *v1.LimitRange {
	return &v1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod}}},
	}
}
