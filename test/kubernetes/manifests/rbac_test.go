// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/authorization/bootstrap"
	"github.com/borough-io/borough/test/harness"
)

// TestBindings checks that every binding refers to an existing role and one of our
// service accounts, or to that for all users, and that every role is bound.
func TestBindings(t *testing.T) {
	// Roles that every cluster has.
	builtin := []string{
		key("ClusterRole", "", "system:auth-delegator"),
		key("Role", "kube-system", "extension-apiserver-authentication-reader"),
	}
	// Roles that the operator binds, or that the cluster aggregates.
	unbound := []string{"borough-view", "borough-edit", "borough-metrics-reader"}

	forEachCase(t, func(t *testing.T, all objects) {
		bound := map[string]bool{}
		check := func(name, namespace string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
			role := key(ref.Kind, namespace, ref.Name)
			if ref.Kind == "ClusterRole" {
				role = key(ref.Kind, "", ref.Name)
			}
			bound[role] = true
			if all[role] == nil && !slices.Contains(builtin, role) {
				t.Errorf("%s: no %s", name, role)
			}
			for _, s := range subjects {
				if name == "borough-project-viewer" && s.Kind == "Group" && s.Name == user.AllAuthenticated {
					continue
				}
				if s.Kind != "ServiceAccount" || all[key(s.Kind, s.Namespace, s.Name)] == nil {
					t.Errorf("%s: no %s %s/%s", name, s.Kind, s.Namespace, s.Name)
				}
			}
			if len(subjects) != 1 {
				t.Errorf("%s: %d subjects", name, len(subjects))
			}
		}
		each(all, func(b *rbacv1.RoleBinding) { check(b.Name, b.Namespace, b.RoleRef, b.Subjects) })
		each(all, func(b *rbacv1.ClusterRoleBinding) { check(b.Name, "", b.RoleRef, b.Subjects) })
		for _, role := range builtin {
			if !bound[role] {
				t.Errorf("%s is not bound", role)
			}
		}
		for k, o := range all {
			switch o.(type) {
			case *rbacv1.Role, *rbacv1.ClusterRole:
				if !bound[k] && !slices.Contains(unbound, o.GetName()) {
					t.Errorf("%s is not bound", k)
				}
			}
		}
	})
}

// TestEveryKind checks that the controller has the rights that it has standalone, and
// that the roles for tenants grant rights for all kinds.
func TestEveryKind(t *testing.T) {
	// What tenants may only read, with the reason.
	readOnly := map[string]string{
		"limitranges":    "they bound what the tenant may use",
		"resourcequotas": "they bound what the tenant may use",
	}
	forEachCase(t, func(t *testing.T, all objects) {
		covers := func(role string, rules ...rbacv1.PolicyRule) {
			t.Helper()
			granted := all[key("ClusterRole", "", role)].(*rbacv1.ClusterRole).Rules
			if ok, lacks := validation.Covers(granted, rules); !ok {
				t.Errorf("%s lacks %v", role, lacks)
			}
		}
		// Every user has the rights of discovery.
		needed := slices.DeleteFunc(bootstrap.ControllerRules(), func(r rbacv1.PolicyRule) bool { return r.NonResourceURLs != nil })
		covers("borough-controller-manager", needed...)
		for _, kind := range tenancy.NamespacedKinds() {
			on := func(verbs ...string) rbacv1.PolicyRule {
				return rbacv1.PolicyRule{APIGroups: []string{tenancy.GroupName}, Resources: []string{kind.Resource}, Verbs: verbs}
			}
			covers("borough-view", on("get", "list", "watch"))
			if readOnly[kind.Resource] == "" {
				covers("borough-edit", on("create", "delete", "deletecollection", "patch", "update"))
			}
		}
	})
}

// TestTenantRights checks that tenants have the same rights in a cluster as on a
// standalone server.
func TestTenantRights(t *testing.T) {
	forEachCase(t, func(t *testing.T, all objects) {
		for name, want := range map[string][]rbacv1.PolicyRule{"borough-view": bootstrap.ViewRules(), "borough-edit": bootstrap.EditRules()} {
			role := all[key("ClusterRole", "", name)].(*rbacv1.ClusterRole)
			if ok, lacks := validation.Covers(role.Rules, want); !ok {
				t.Errorf("%s lacks %v", name, lacks)
			}
			if ok, beyond := validation.Covers(want, role.Rules); !ok {
				t.Errorf("standalone, tenants lack %v of %s", beyond, name)
			}
		}
	})
}

// TestProjectRights checks that users have the same right to projects in a cluster as on a
// standalone server.
func TestProjectRights(t *testing.T) {
	role := decode(t, kustomize(t, "everything"))[key("ClusterRole", "", "borough-project-viewer")].(*rbacv1.ClusterRole)
	if diff := cmp.Diff(bootstrap.ProjectRules(), role.Rules); diff != "" {
		t.Errorf("(-standalone +in a cluster):\n%s", diff)
	}
}

// TestSourceRights checks that sources have the rights in the cluster that they have in
// their Namespace on a standalone server, and no others. They cannot delete the Namespace,
// which --prune-namespace does, because several nodes share it.
func TestSourceRights(t *testing.T) {
	all := decode(t, kustomize(t, "everything"))
	inCluster := all[key("ClusterRole", "", "borough-source")].(*rbacv1.ClusterRole).Rules
	want := bootstrap.SourceRules()
	for i, rule := range want {
		if slices.Equal(rule.Resources, []string{"namespaces"}) {
			want[i].Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return verb == "delete" })
			want[i].ResourceNames = []string{sourceNamespace}
			if diff := cmp.Diff(want[i:i+1], inCluster); diff != "" {
				t.Errorf("in the whole cluster (-want +got):\n%s", diff)
			}
		}
	}
	got := slices.Concat(inCluster, all[key("Role", sourceNamespace, "borough-source")].(*rbacv1.Role).Rules)
	if ok, lacks := validation.Covers(got, want); !ok {
		t.Errorf("in a cluster, sources lack %v", lacks)
	}
	if ok, beyond := validation.Covers(want, got); !ok {
		t.Errorf("standalone, sources lack %v", beyond)
	}
}

// TestLeastPrivilege checks that no rule has a wildcard, that the controller has
// no more rights in a cluster than standalone, and that the roles for tenants
// grant rights for our kinds only.
func TestLeastPrivilege(t *testing.T) {
	forEachCase(t, func(t *testing.T, all objects) {
		check := func(name string, rules []rbacv1.PolicyRule) {
			for _, r := range rules {
				for _, list := range [][]string{r.APIGroups, r.Resources, r.Verbs, r.NonResourceURLs} {
					if slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "*") }) {
						t.Errorf("%s: %v", name, r)
					}
				}
			}
		}
		each(all, func(r *rbacv1.Role) { check(r.Name, r.Rules) })
		each(all, func(r *rbacv1.ClusterRole) { check(r.Name, r.Rules) })

		controller := all[key("ClusterRole", "", "borough-controller-manager")].(*rbacv1.ClusterRole)
		if ok, beyond := validation.Covers(bootstrap.ControllerRules(), controller.Rules); !ok {
			t.Errorf("the controller has more rights than it needs: %v", beyond)
		}
		for _, name := range []string{"borough-view", "borough-edit"} {
			role := all[key("ClusterRole", "", name)].(*rbacv1.ClusterRole)
			for _, r := range role.Rules {
				if !slices.Equal(r.APIGroups, []string{tenancy.GroupName}) {
					t.Errorf("%s: groups %v", name, r.APIGroups)
				}
			}
		}
	})
}

// TestSecrets checks that no service account may create Secrets, or read or write any
// by all names, and that applying a Secret again changes no data.
func TestSecrets(t *testing.T) {
	forEachCase(t, func(t *testing.T, all objects) {
		check := func(name string, rules []rbacv1.PolicyRule) {
			for _, r := range rules {
				if slices.Contains(r.Resources, "secrets") && (len(r.ResourceNames) == 0 || slices.Contains(r.Verbs, "create")) {
					t.Errorf("%s: %v", name, r)
				}
			}
		}
		each(all, func(r *rbacv1.Role) { check(r.Name, r.Rules) })
		each(all, func(r *rbacv1.ClusterRole) { check(r.Name, r.Rules) })
		each(all, func(s *corev1.Secret) {
			if s.Data != nil || s.StringData != nil || s.Type != "" || s.Immutable != nil {
				t.Errorf("%s has data, or a type", s.Name)
			}
		})
	})
}

// TestNoInsecureSettings checks that no field has "insecure" or "skip" in its name
// or value.
func TestNoInsecureSettings(t *testing.T) {
	for _, name := range cases {
		for tool, rendered := range map[string][]byte{"kustomize": kustomize(t, name), "helm": helm(t, valuesOf(name))} {
			for line := range bytes.Lines(rendered) {
				if lower := bytes.ToLower(line); bytes.Contains(lower, []byte("insecure")) || bytes.Contains(lower, []byte("skip")) {
					t.Errorf("%s, %s: %s", name, tool, line)
				}
			}
		}
	}
}

// TestDoctorRights checks that the CronJob in docs/doctor.md has the rights of helm test.
func TestDoctorRights(t *testing.T) {
	documented, err := harness.Documented("doctor.md", "doctor-cronjob")
	if err != nil {
		t.Fatal(err)
	}
	rights := func(all objects) map[string][]rbacv1.PolicyRule {
		rules := map[string][]rbacv1.PolicyRule{}
		each(all, func(r *rbacv1.ClusterRole) { rules[""] = r.Rules })
		each(all, func(r *rbacv1.Role) { rules[r.Namespace] = r.Rules })
		return rules
	}
	if diff := cmp.Diff(rights(helmTest(t)), rights(decode(t, []byte(documented)))); diff != "" {
		t.Errorf("rules by namespace (-chart +docs):\n%s", diff)
	}
}
