// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runDoctor runs doctor on a cluster that serves only /version.
func runDoctor(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/version" {
			http.NotFound(w, req)
			return
		}
		fmt.Fprint(w, `{"gitVersion": "v1.36.3"}`)
	}))
	defer cluster.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"clusters": [{"name": "c", "cluster": {"server": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}`, cluster.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	// Without --kubeconfig, doctor uses this one, as kubectl does.
	t.Setenv("KUBECONFIG", kubeconfig)
	var out bytes.Buffer
	cmd := NewCommand(nil) // run starts the server; doctor does not call it
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "KUBECONFIG", kubeconfig)
	}
	cmd.SetArgs(append([]string{"doctor"}, args...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestDoctorFlags(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "ok     cluster: Kubernetes v1.36.3"},
		{[]string{"--kubeconfig=KUBECONFIG"}, "ok     cluster: Kubernetes v1.36.3"},
		{nil, "the service account borough-system/borough-apiserver does not exist"},
		{[]string{"--namespace=here", "--service-account=me"}, "the service account here/me does not exist"},
		{[]string{"-n", "here"}, "the service account here/borough-apiserver does not exist"},
	} {
		out, err := runDoctor(t, tc.args...)
		if err == nil || !strings.HasSuffix(err.Error(), "faults") || !strings.Contains(out, tc.want) {
			t.Errorf("%v: got %v\n%s\nwant faults, and %q", tc.args, err, out, tc.want)
		}
	}
	out, err := runDoctor(t, "--output=json")
	var report struct {
		Findings []struct{ Check, Status string }
	}
	if jsonErr := json.Unmarshal([]byte(out), &report); err == nil || jsonErr != nil || len(report.Findings) == 0 || report.Findings[0].Check != "cluster" || report.Findings[0].Status != "ok" {
		t.Errorf("--output=json: got %v, %v\n%s", err, jsonErr, out)
	}
}

func TestDoctorRejectsFlags(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--output=xml"}, `--output must be text or json, not "xml"`},
		{[]string{"--kubeconfig=/dev/null/kubeconfig"}, "load the kubeconfig of the cluster"},
		{[]string{"--standalone"}, "unknown flag: --standalone"},
		{[]string{"argument"}, `"argument"`},
	} {
		out, err := runDoctor(t, tc.args...)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") || out != "" {
			t.Errorf("%v: got %v, want one line with %q\n%s", tc.args, err, tc.want, out)
		}
	}
}
