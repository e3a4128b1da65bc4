// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor tests "borough-apiserver doctor" in a real Kubernetes cluster,
// with a deployment in which it causes each fault in turn. The tests of
// pkg/doctor cover faults that can't be caused in a real cluster, such as a
// wrong clock.
package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m) }

// finding is a finding of doctor in JSON.
type finding struct{ Check, Status, Message, Fix string }

// findings runs doctor and returns its findings.
func findings(t *testing.T, kubeconfig string) []finding {
	t.Helper()
	out := run(t, kubeconfig, "--output=json")
	var report struct{ Findings []finding }
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Findings) == 0 {
		t.Fatalf("doctor wrote no findings: %v\n%s", err, out)
	}
	return report.Findings
}

// run runs doctor and returns its output. The exit code must be 1 if there is a
// fault, else 0.
func run(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	path, err := harness.Binary("borough-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{"doctor", "--kubeconfig=" + kubeconfig}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run doctor: %v", err)
	}
	out := stdout.String()
	faulty := strings.Contains(out, "FAULT") || strings.Contains(out, `"status": "fault"`)
	if want := map[bool]int{true: 1, false: 0}[faulty]; cmd.ProcessState.ExitCode() != want {
		t.Fatalf("exit code %d, want %d\n%s%s", cmd.ProcessState.ExitCode(), want, out, stderr.String())
	}
	if faulty != strings.Contains(stderr.String(), "fault") {
		t.Errorf("standard error: %q", stderr.String())
	}
	return out
}
