// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/borough-io/borough/test/harness"
)

// TestReferences checks that every reference to an object, a label or a port
// resolves.
func TestReferences(t *testing.T) {
	forEachCase(t, func(t *testing.T, all objects) { checkReferences(t, all, namespace) })
}

// TestDocumentedNetworkPolicies checks the labels and ports in docs/deploy.md.
func TestDocumentedNetworkPolicies(t *testing.T) {
	documented, err := harness.Documented("deploy.md", "network-policies")
	if err != nil {
		t.Fatal(err)
	}
	policies, checked := decode(t, []byte(documented)), 0
	forEachCase(t, func(t *testing.T, all objects) {
		found := workloads(all)
		each(policies, func(p *networkingv1.NetworkPolicy) {
			if !slices.ContainsFunc(found, func(w workload) bool { return w.name == p.Name }) {
				return // the etcd is another one
			}
			checked++
			w := selected(t, found, &p.Spec.PodSelector)
			if w == nil || w.name != p.Name || w.namespace != p.Namespace {
				t.Errorf("NetworkPolicy %s does not select the workload with its name", p.Name)
				return
			}
			var admitted, listening []int32
			for _, rule := range p.Spec.Ingress {
				for _, port := range rule.Ports {
					admitted = append(admitted, port.Port.IntVal)
				}
			}
			for _, c := range w.pod.Spec.Containers {
				for _, port := range c.Ports {
					listening = append(listening, port.ContainerPort)
				}
			}
			slices.Sort(admitted)
			slices.Sort(listening)
			if !slices.Equal(admitted, listening) {
				t.Errorf("NetworkPolicy %s is for the ports %v, %s has %v", p.Name, admitted, w.name, listening)
			}
		})
	})
	if checked < len(policies) {
		t.Errorf("%d policies were checked, there are %d", checked, len(policies))
	}
}

// TestSpread checks that Pods that a rollout replaces do not count when the scheduler spreads
// the new ones over nodes: otherwise these can run on one node.
func TestSpread(t *testing.T) {
	forEachCase(t, func(t *testing.T, all objects) {
		each(all, func(d *appsv1.Deployment) {
			for _, term := range d.Spec.Template.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
				if keys := term.PodAffinityTerm.MatchLabelKeys; !slices.Contains(keys, appsv1.DefaultDeploymentUniqueLabelKey) {
					t.Errorf("%s: the anti-affinity over %s also counts Pods that are replaced", d.Name, term.PodAffinityTerm.TopologyKey)
				}
			}
		})
	})
}

func checkReferences(t *testing.T, all objects, namespace string) {
	t.Helper()
	found := workloads(all)
	if len(found) < 2 {
		t.Fatalf("%d workloads", len(found))
	}
	for _, w := range found {
		own := labels.Set(w.pod.Labels)
		selectors := []*metav1.LabelSelector{w.selector}
		anti, wantSelectors := &corev1.PodAntiAffinity{}, 1
		if !w.isDaemon {
			anti, wantSelectors = w.pod.Spec.Affinity.PodAntiAffinity, 3
		}
		for _, term := range anti.RequiredDuringSchedulingIgnoredDuringExecution {
			selectors = append(selectors, term.LabelSelector)
		}
		for _, term := range anti.PreferredDuringSchedulingIgnoredDuringExecution {
			selectors = append(selectors, term.PodAffinityTerm.LabelSelector)
		}
		for _, spread := range w.pod.Spec.TopologySpreadConstraints {
			selectors = append(selectors, spread.LabelSelector)
		}
		if len(selectors) != wantSelectors {
			t.Errorf("%s: %d selectors", w.name, len(selectors))
		}
		for _, s := range selectors {
			if !matches(t, s, own) {
				t.Errorf("%s: the selector %v does not select its own Pods", w.name, s.MatchLabels)
			}
		}
		if all[key("ServiceAccount", w.namespace, w.pod.Spec.ServiceAccountName)] == nil {
			t.Errorf("%s: no service account %s", w.name, w.pod.Spec.ServiceAccountName)
		}
		if !w.isDaemon && all[key("PodDisruptionBudget", namespace, w.name)] == nil {
			t.Errorf("%s: no PodDisruptionBudget", w.name)
		}
		for _, c := range w.pod.Spec.Containers {
			for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				if probe != nil && !hasPort(w.pod, probe.HTTPGet.Port.StrVal) {
					t.Errorf("%s: a probe is on port %s", w.name, probe.HTTPGet.Port.StrVal)
				}
			}
		}
	}
	each(all, func(b *policyv1.PodDisruptionBudget) {
		if w := selected(t, found, b.Spec.Selector); w == nil || w.name != b.Name {
			t.Errorf("PodDisruptionBudget %s does not select the workload with its name", b.Name)
		}
	})
	each(all, func(s *corev1.Service) {
		w := selected(t, found, metav1.SetAsLabelSelector(s.Spec.Selector))
		if w == nil {
			t.Errorf("service %s selects nothing", s.Name)
			return
		}
		for _, p := range s.Spec.Ports {
			if !hasPort(w.pod, p.TargetPort.StrVal) {
				t.Errorf("service %s: %s has no port %q", s.Name, w.name, p.TargetPort.StrVal)
			}
		}
	})
	each(all, func(s *appsv1.StatefulSet) {
		if all[key("Service", namespace, s.Spec.ServiceName)] == nil {
			t.Errorf("%s: no service %s", s.Name, s.Spec.ServiceName)
		}
		for _, claim := range s.Spec.VolumeClaimTemplates {
			if claim.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim") {
				t.Errorf("%s: the claim %s is %q, unlike what kube-apiserver returns", s.Name, claim.Name, claim.GroupVersionKind())
			}
		}
	})
	each(all, func(m *monitoringv1.ServiceMonitor) {
		service, ok := all[key("Service", namespace, m.Name)].(*corev1.Service)
		if !ok || !matches(t, &m.Spec.Selector, service.Labels) {
			t.Errorf("ServiceMonitor %s does not select the service with its name", m.Name)
			return
		}
		for _, e := range m.Spec.Endpoints {
			if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == e.Port }) {
				t.Errorf("ServiceMonitor %s: the service has no port %s", m.Name, e.Port)
			}
		}
	})
	each(all, func(p *networkingv1.NetworkPolicy) {
		w := selected(t, found, &p.Spec.PodSelector)
		if w == nil || w.name != p.Name {
			t.Errorf("NetworkPolicy %s does not select the workload with its name", p.Name)
			return
		}
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				if !hasPort(w.pod, port.Port.StrVal) {
					t.Errorf("NetworkPolicy %s: %s has no port %q", p.Name, w.name, port.Port.StrVal)
				}
			}
		}
	})
	each(all, func(f *flowcontrolv1.FlowSchema) {
		for _, rule := range f.Spec.Rules {
			for _, s := range rule.Subjects {
				if all[key("ServiceAccount", s.ServiceAccount.Namespace, s.ServiceAccount.Name)] == nil || s.ServiceAccount.Namespace != namespace {
					t.Errorf("FlowSchema %s: no service account %s/%s", f.Name, s.ServiceAccount.Namespace, s.ServiceAccount.Name)
				}
			}
			for _, r := range rule.ResourceRules {
				if len(r.Namespaces) > 0 && r.Namespaces[0] != "*" && r.Namespaces[0] != namespace {
					t.Errorf("FlowSchema %s: namespaces %v", f.Name, r.Namespaces)
				}
			}
		}
	})
	each(all, func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
		if all[key("ValidatingAdmissionPolicyBinding", "", p.Name)] == nil {
			t.Errorf("ValidatingAdmissionPolicy %s is not bound", p.Name)
		}
		var users []string
		for _, c := range p.Spec.MatchConditions {
			user, _ := strings.CutPrefix(c.Expression, "request.userInfo.username == ")
			users = append(users, user)
		}
		if want := fmt.Sprintf("%q", serviceaccount.MakeUsername(namespace, "borough-apiserver")); !slices.Equal(users, []string{want}) {
			t.Errorf("ValidatingAdmissionPolicy %s is for %v, not for %s", p.Name, users, want)
		}
	})
	each(all, func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
		if all[key("ValidatingAdmissionPolicy", "", b.Spec.PolicyName)] == nil {
			t.Errorf("ValidatingAdmissionPolicyBinding %s: no policy %s", b.Name, b.Spec.PolicyName)
		}
	})
	for k, o := range all {
		isSource := o.GetName() == "borough-source" && o.GetNamespace() == sourceNamespace
		if ns := o.GetNamespace(); ns != "" && ns != namespace && !isSource && k != key("RoleBinding", "kube-system", "borough-apiserver-auth-reader") {
			t.Errorf("%s is in another namespace", k)
		}
	}
	checkAPIService(t, all, namespace)
	checkCertificates(t, all, namespace)
}

func checkAPIService(t *testing.T, all objects, namespace string) {
	t.Helper()
	s, ok := all[key("APIService", "", "v1.tenancy.borough.io")].(*apiregistrationv1.APIService)
	if !ok {
		t.Fatal("there is no APIService")
	}
	if s.Spec.InsecureSkipTLSVerify {
		t.Error("the APIService does not verify the server")
	}
	if s.Spec.Service.Namespace != namespace {
		t.Errorf("the namespace of the APIService is %s", s.Spec.Service.Namespace)
	}
	service, ok := all[key("Service", namespace, s.Spec.Service.Name)].(*corev1.Service)
	if !ok || !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == *s.Spec.Service.Port }) {
		t.Error("the APIService does not refer to a port of a service")
	}
	// The core group has priority 18000, custom resources have 1000.
	if s.Spec.GroupPriorityMinimum >= 1000 {
		t.Errorf("with group priority %d, pods could mean ours instead of core's in kubectl", s.Spec.GroupPriorityMinimum)
	}

	generated := slices.ContainsFunc(workloads(all), func(w workload) bool {
		return slices.ContainsFunc(w.pod.Spec.Containers[0].Args, func(arg string) bool { return strings.HasPrefix(arg, "--serving-cert-secret=") })
	})
	from, injected := s.Annotations["cert-manager.io/inject-ca-from"]
	sources := 0
	for _, is := range []bool{generated, injected, len(s.Spec.CABundle) > 0} {
		if is {
			sources++
		}
	}
	if sources != 1 {
		t.Errorf("the caBundle has %d sources, want 1", sources)
	}
	if injected && all[strings.Replace(key("Certificate", "", from), " /", " ", 1)] == nil {
		t.Errorf("there is no certificate %s to inject the CA from", from)
	}
}

// checkCertificates checks that all Secrets are created, if any is, and that the
// certificates have the DNS names that clients use.
func checkCertificates(t *testing.T, all objects, namespace string) {
	t.Helper()
	bySecret := map[string]*certmanagerv1.Certificate{}
	each(all, func(c *certmanagerv1.Certificate) {
		bySecret[c.Spec.SecretName] = c
		if all[key(c.Spec.IssuerRef.Kind, namespace, c.Spec.IssuerRef.Name)] == nil {
			t.Errorf("certificate %s: no issuer %s", c.Name, c.Spec.IssuerRef.Name)
		}
		if c.Spec.RenewBefore.Duration >= c.Spec.Duration.Duration {
			t.Errorf("certificate %s: renewBefore is not below duration", c.Name)
		}
	})
	each(all, func(i *certmanagerv1.Issuer) {
		if i.Spec.CA != nil && (bySecret[i.Spec.CA.SecretName] == nil || !bySecret[i.Spec.CA.SecretName].Spec.IsCA) {
			t.Errorf("issuer %s: no certificate creates its CA", i.Name)
		}
	})
	created := slices.Collect(maps.Keys(bySecret))
	each(all, func(s *corev1.Secret) { created = append(created, s.Name) })
	if len(created) == 0 {
		return
	}
	var etcdHosts []string
	if c := bySecret["borough-etcd-tls"]; c != nil {
		etcdHosts = c.Spec.DNSNames
	}
	args := map[string]string{}
	for _, w := range workloads(all) {
		for _, v := range w.pod.Spec.Volumes {
			if v.Secret != nil && !slices.Contains(created, v.Secret.SecretName) {
				t.Errorf("%s: the Secret %s is not created", w.name, v.Secret.SecretName)
			}
		}
		for _, arg := range w.pod.Spec.Containers[0].Args {
			flag, value, _ := strings.Cut(arg, "=")
			args[flag] = value
			if strings.HasSuffix(flag, "-secret") && all[key("Secret", namespace, strings.TrimPrefix(value, namespace+"/"))] == nil {
				t.Errorf("%s: the Secret of %s is not created", w.name, arg)
			}
		}
	}
	if hosts := args["--etcd-cert-hosts"]; hosts != "" {
		etcdHosts = strings.Split(hosts, ",")
	}
	checkEtcdNames(t, all, etcdHosts, args)
	name := fmt.Sprintf("borough-apiserver.%s.svc", namespace)
	if c := bySecret["borough-apiserver-tls"]; c != nil && !slices.Contains(c.Spec.DNSNames, name) {
		t.Errorf("the serving certificate does not have the DNS name %s", name)
	}
}

// checkEtcdNames checks that each member has a name in the certificate, and that the
// servers connect to all of them.
func checkEtcdNames(t *testing.T, all objects, hosts []string, args map[string]string) {
	t.Helper()
	members := 0
	each(all, func(s *appsv1.StatefulSet) { members = int(*s.Spec.Replicas) })
	for flag, count := range map[string]int{
		"--etcd-servers":    strings.Count(args["--etcd-servers"], "https://"),
		"--initial-cluster": strings.Count(args["--initial-cluster"], "https://"),
	} {
		if count != members {
			t.Errorf("%s has %d members, want %d: %s", flag, count, members, args[flag])
		}
	}
	for member := range strings.SplitSeq(args["--etcd-servers"], ",") {
		u, err := url.Parse(member)
		if err != nil || u.Scheme != "https" || !slices.Contains(hosts, u.Hostname()) {
			t.Errorf("the certificate of etcd does not have the DNS name of %s (%v)", member, err)
		}
		if host := strings.TrimSuffix(u.Host, ":2379"); !strings.Contains(args["--initial-cluster"], "=https://"+host+":2380") {
			t.Errorf("--initial-cluster does not have the member %s", host)
		}
	}
}

func matches(t *testing.T, s *metav1.LabelSelector, set labels.Set) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return !selector.Empty() && selector.Matches(set)
}

// selected returns the workload whose Pods are selected; nil if there is not
// exactly one.
func selected(t *testing.T, all []workload, s *metav1.LabelSelector) *workload {
	t.Helper()
	var found []workload
	for _, w := range all {
		if matches(t, s, w.pod.Labels) {
			found = append(found, w)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return &found[0]
}

func hasPort(pod *corev1.PodTemplateSpec, name string) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
	})
}
