// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/borough-io/borough/pkg/doctor"
	"github.com/borough-io/borough/test/certs"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// fault is a change that breaks a deployment.
type fault struct {
	name   string
	inject func(*testing.T)
	// reports are the faults that doctor must report: a text in the message, by check.
	reports map[string]string
	// repair is what is needed besides applying the manifests again.
	repair func(*testing.T)
}

func (s *site) faults() []fault {
	kubectl := func(args ...string) func(*testing.T) {
		return func(t *testing.T) { s.kubectl.Run(t, append([]string{"--namespace=" + systemNamespace}, args...)...) }
	}
	remove := func(objects ...string) func(*testing.T) { return kubectl(append([]string{"delete"}, objects...)...) }
	var node string
	return []fault{
		{"no controller runs", kubectl("scale", controller, "--replicas=0"),
			map[string]string{"controller": "no controller leads"}, nil},
		{"the controller has no rights", remove("clusterrolebinding", "borough-controller-manager"),
			map[string]string{"controller rights": "system:serviceaccount:borough-system:borough-controller-manager cannot"}, nil},
		{"the controller has no right to its Lease", remove("rolebinding", "borough-controller-manager-leader-election"),
			map[string]string{"controller rights": "leases"}, nil},
		{"the server cannot delegate", remove("clusterrolebinding", "borough-apiserver-auth-delegator"),
			map[string]string{"delegator binding": "cannot create tokenreviews"}, nil},
		{"the server cannot read how to authenticate", kubectl("--namespace=kube-system", "delete", "rolebinding", "borough-apiserver-auth-reader"),
			map[string]string{"reader binding": "cannot"}, nil},
		{"no FlowSchemas", remove("flowschemas", "--selector="+selector),
			map[string]string{"flow control": "tenants can delay"}, nil},
		{"no APIService", remove("apiservice", apiService),
			map[string]string{"APIService": "does not exist"}, nil},
		// Servers with the right to do so restore caBundle.
		{"wrong caBundle", func(t *testing.T) {
			remove("clusterrolebinding", "borough-apiserver-ca-bundle")(t)
			s.awaitDoctor(t, map[string]string{"rights": "apiservices"})
			patch, err := json.Marshal(map[string]any{"spec": map[string]any{"caBundle": foreignCA(t)}})
			if err != nil {
				t.Fatal(err)
			}
			kubectl("patch", "apiservice", apiService, "--type=merge", "--patch="+string(patch))(t)
		}, map[string]string{"caBundle": "is not signed by a CA in caBundle", "APIService available": "x509"}, nil},
		{"caBundle is not verified", kubectl("patch", "apiservice", apiService, "--type=merge", `--patch={"spec":{"insecureSkipTLSVerify":true,"caBundle":null}}`),
			map[string]string{"caBundle": "insecureSkipTLSVerify is set"},
			kubectl("patch", "apiservice", apiService, "--type=merge", `--patch={"spec":{"insecureSkipTLSVerify":null}}`)},
		{"the Service selects no Pods", kubectl("patch", "service", "borough-apiserver", `--patch={"spec":{"selector":{"app.kubernetes.io/name":"none"}}}`),
			map[string]string{"APIService available": "endpoint"}, nil},
		{"a server that does not start", kubectl("set", "image", server, "*=borough-apiserver:missing"),
			map[string]string{"pods": "borough-apiserver:missing"}, nil},
		{"a member of etcd is Pending", func(t *testing.T) {
			member := s.pods(t, etcd)[0]
			node = member.Spec.NodeName
			kubectl("cordon", node)(t)
			kubectl("delete", "pod", member.Name)(t)
		}, map[string]string{"etcd members": "borough-etcd-0"}, func(t *testing.T) { kubectl("uncordon", node)(t) }},
		{"no etcd", kubectl("scale", etcd, "--replicas=0"),
			map[string]string{"etcd members": "0 replicas", "etcd": "needs etcd"}, nil},
	}
}

// checkFaults injects one fault after another. doctor must report each, and find none
// after the repair.
func (s *site) checkFaults(t *testing.T, overlay string) {
	for _, f := range s.faults() {
		s.step(t, f.name, func(t *testing.T) {
			f.inject(t)
			s.awaitDoctor(t, f.reports)
			if f.repair != nil {
				f.repair(t)
			}
			s.kubectl.Run(t, "apply", "--kustomize="+overlay)
			s.awaitDoctor(t, nil)
			s.awaitRollout(t)
		})
	}
}

// checkDoctor fails the test if doctor finds a fault.
func (s *site) checkDoctor(t *testing.T) {
	t.Helper()
	findings, err := s.doctor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		switch f.Status {
		case doctor.OK:
		case doctor.Fault:
			t.Errorf("doctor: %s: %s", f.Check, f.Message)
		default:
			t.Logf("doctor: %s: %s: %s", f.Status, f.Check, f.Message)
		}
	}
}

// awaitDoctor waits until doctor reports certain faults, or finds none.
func (s *site) awaitDoctor(t *testing.T, want map[string]string) {
	t.Helper()
	start := time.Now()
	err := poll.Until(t.Context(), timeout, func(ctx context.Context) error {
		findings, err := s.doctor(ctx)
		if err != nil {
			return err
		}
		messages := map[string]string{}
		for _, f := range findings {
			if f.Status == doctor.Fault {
				messages[f.Check] = f.Message
			}
		}
		if len(want) == 0 && len(messages) > 0 {
			return fmt.Errorf("doctor reports %q", messages)
		}
		for check, text := range want {
			if !strings.Contains(messages[check], text) {
				return fmt.Errorf("doctor does not report a fault of the check %q with %q: %q", check, text, messages)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("doctor reports the %d faults that it must after %.0f s", len(want), time.Since(start).Seconds())
}

// doctor runs doctor. Its exit code must be 1 if there is a fault, else 0.
func (s *site) doctor(ctx context.Context) ([]doctor.Finding, error) {
	path, err := harness.Binary("borough-apiserver")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, "doctor", "--kubeconfig="+s.kubeconfig, "--output=json")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	var report struct{ Findings []doctor.Finding }
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, fmt.Errorf("the report of doctor: %w", err)
	}
	if code := cmd.ProcessState.ExitCode(); (code == 1) != (doctor.Faults(report.Findings) > 0) || code > 1 {
		return nil, fmt.Errorf("doctor exits with %d, with these findings: %v", code, report.Findings)
	}
	return report.Findings, nil
}

// foreignCA returns the certificate of a CA that has signed nothing, as PEM.
func foreignCA(t *testing.T) []byte {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "foreign"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	ca, _ := certs.Sign(t, template, nil, nil)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})
}
