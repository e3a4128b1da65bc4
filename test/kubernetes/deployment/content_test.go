// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

const (
	// finalizer blocks the removal of objects.
	finalizer = "example.com/hold"
	// kept is the name of objects that a policy protects from deletion.
	kept = "kept"
)

// keepPolicy denies deletes of objects with that name, and deletecollections of
// their kind.
const keepPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: keep
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [tenancy.borough.io], apiVersions: [v1], operations: [DELETE], resources: [pods, limitranges, resourcequotas]}
  validations:
  - expression: oldObject == null || oldObject.metadata.name != "` + kept + `"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: keep
spec:
  policyName: keep
  validationActions: [Deny]
`

func (s *site) tenancy(t *testing.T) tenancyv1.TenancyV1Interface {
	t.Helper()
	return s.cluster.BoroughClient(t).TenancyV1()
}

// purge creates a Namespace with content, deletes it, and returns its name.
func (s *site) purge(t *testing.T, content ...any) string {
	t.Helper()
	name, err := s.tryPurge(t, content...)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// tryPurge is purge for when kube-apiserver may answer 503.
func (s *site) tryPurge(t *testing.T, content ...any) (string, error) {
	t.Helper()
	ctx, client := t.Context(), s.tenancy(t)
	ns, err := client.Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "purge-"}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	for _, object := range content {
		switch o := object.(type) {
		case *v1.Pod:
			_, err = client.Pods(ns.Name).Create(ctx, o, metav1.CreateOptions{})
		case *v1.LimitRange:
			_, err = client.LimitRanges(ns.Name).Create(ctx, o, metav1.CreateOptions{})
		case *v1.ResourceQuota:
			_, err = client.ResourceQuotas(ns.Name).Create(ctx, o, metav1.CreateOptions{})
		}
		if err != nil {
			return "", err
		}
	}
	if err := client.Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil {
		return "", err
	}
	s.purged = append(s.purged, ns.Name)
	return ns.Name, nil
}

// purgeFull purges a Namespace with content that can be deleted.
func (s *site) purgeFull(t *testing.T) {
	s.purge(t, harness.NewPod("pod"), newLimits("limits"), newQuota("quota"))
}

// purgeHeld purges Namespaces with content that finalizers block until release.
func (s *site) purgeHeld(t *testing.T) {
	s.purge(t, harness.NewPod("held", finalizer))
	s.purge(t, newLimits("held", finalizer))
	s.purge(t, newQuota("held", finalizer))
}

// purgeKept purges Namespaces with content that keepPolicy protects. They
// remain.
func (s *site) purgeKept(t *testing.T) {
	s.purge(t, harness.NewPod(kept), harness.NewPod("pod"))
	s.purge(t, newLimits(kept), newLimits("limits"))
	s.purge(t, newQuota(kept), newQuota("quota"))
}

// purgeBlocked purges a Namespace that has a finalizer of its own until release. The
// controller finalizes it by a separate request.
func (s *site) purgeBlocked(t *testing.T) {
	t.Helper()
	ctx, client := t.Context(), s.tenancy(t).Namespaces()
	ns, err := client.Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "purge-", Finalizers: []string{finalizer}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.purged = append(s.purged, ns.Name)
}

// purgeWaiting purges a Namespace with content that a finalizer blocks, and returns
// its name when the controller waits for that.
func (s *site) purgeWaiting(t *testing.T) string {
	t.Helper()
	name := s.purge(t, harness.NewPod("held", finalizer))
	poll.Eventually(t, func() string {
		ns, err := s.tenancy(t).Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if ns.Status.Termination == nil {
			return "the controller has not been there yet"
		}
		return ""
	})
	return name
}

// purgeAbandoned purges a Namespace that another client finalizes while it has
// content. Its removal is sometimes by a write of its status.
func (s *site) purgeAbandoned(t *testing.T) {
	t.Helper()
	ctx, client := t.Context(), s.tenancy(t)
	name := s.purgeWaiting(t)
	poll.Eventually(t, func() string {
		ns, err := client.Namespaces().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		ns.Spec.Finalizers = nil
		if _, err = client.Namespaces().Finalize(ctx, name, ns, metav1.UpdateOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	s.release(t, name)
}

// release removes the finalizers of Namespaces and in them.
func (s *site) release(t *testing.T, namespaces ...string) {
	t.Helper()
	ctx, client := t.Context(), s.tenancy(t)
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	for _, name := range namespaces {
		_, podErr := client.Pods(name).Patch(ctx, "held", types.MergePatchType, patch, metav1.PatchOptions{})
		_, limitsErr := client.LimitRanges(name).Patch(ctx, "held", types.MergePatchType, patch, metav1.PatchOptions{})
		_, quotaErr := client.ResourceQuotas(name).Patch(ctx, "held", types.MergePatchType, patch, metav1.PatchOptions{})
		_, namespaceErr := client.Namespaces().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		for _, err := range []error{podErr, limitsErr, quotaErr, namespaceErr} {
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
	}
}

// awaitPurged waits until all purged Namespaces are removed.
func (s *site) awaitPurged(t *testing.T) {
	t.Helper()
	s.release(t, s.purged...)
	for _, name := range s.purged {
		s.awaitGone(t, name)
	}
	s.purged = nil
}

func (s *site) awaitGone(t *testing.T, name string) {
	t.Helper()
	poll.Eventually(t, harness.Gone(t, s.tenancy(t).Namespaces(), name))
}
