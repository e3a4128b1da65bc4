// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/borough-io/borough/cmd/borough-controller-manager/app/options"
)

func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// configOf executes the command and returns the config that it would run with.
func configOf(t *testing.T, args ...string) (*options.Config, error) {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	var got *options.Config
	cmd := NewCommand(func(_ context.Context, config *options.Config) error {
		got = config
		return nil
	})
	cmd.SetOut(&bytes.Buffer{})
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	if err == nil && got == nil {
		err = errors.New("the command did not run and returned no error")
	}
	return got, err
}

func TestDefaults(t *testing.T) {
	config, err := configOf(t, "--kubeconfig="+writeKubeconfig(t, "https://127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name      string
		got, want any
	}{
		{"server", config.Client.Host, "https://127.0.0.1:1"},
		{"requests per second", config.Client.QPS, float32(-1)},
		{"content type", config.Client.ContentType, "application/vnd.kubernetes.protobuf"},
		{"workers", config.Workers, 10},
		{"groups", config.PurgeAPIGroups, []string{"tenancy.borough.io"}},
		{"address", config.HTTPBindAddress, "127.0.0.1:10280"},
		{"leader election", config.LeaderElection.LeaderElect, true},
		{"lease", config.LeaderElection.ResourceNamespace + "/" + config.LeaderElection.ResourceName, "borough-system/borough-controller-manager"},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	if !strings.HasPrefix(config.Client.UserAgent, "borough-controller-manager/") && !strings.HasSuffix(config.Client.UserAgent, "/borough-controller-manager") {
		t.Errorf("user agent %q", config.Client.UserAgent)
	}
}

// TestFlagsSetConfig sets each flag to a value that is not the default. A flag
// that is not in the table fails the test.
func TestFlagsSetConfig(t *testing.T) {
	const skip = "skip" // read by the library or by cobra, not from the config
	table := map[string]struct {
		value string
		got   func(*options.Config) any
		want  any
	}{
		"kubeconfig":                      {writeKubeconfig(t, "https://127.0.0.1:2"), func(c *options.Config) any { return c.Client.Host }, "https://127.0.0.1:2"},
		"kube-api-qps":                    {"7.5", func(c *options.Config) any { return c.Client.QPS }, float32(7.5)},
		"kube-api-burst":                  {"9", func(c *options.Config) any { return c.Client.Burst }, 9},
		"concurrent-namespace-syncs":      {"3", func(c *options.Config) any { return c.Workers }, 3},
		"purge-api-groups":                {"tenancy.borough.io,apps", func(c *options.Config) any { return strings.Join(c.PurgeAPIGroups, " ") }, "tenancy.borough.io apps"},
		"http-bind-address":               {"127.0.0.1:1234", func(c *options.Config) any { return c.HTTPBindAddress }, "127.0.0.1:1234"},
		"leader-elect":                    {"false", func(c *options.Config) any { return c.LeaderElection.LeaderElect }, false},
		"leader-elect-lease-duration":     {"21s", func(c *options.Config) any { return c.LeaderElection.LeaseDuration.Duration }, 21 * time.Second},
		"leader-elect-renew-deadline":     {"11s", func(c *options.Config) any { return c.LeaderElection.RenewDeadline.Duration }, 11 * time.Second},
		"leader-elect-retry-period":       {"1s", func(c *options.Config) any { return c.LeaderElection.RetryPeriod.Duration }, time.Second},
		"leader-elect-resource-lock":      {"leases", func(c *options.Config) any { return c.LeaderElection.ResourceLock }, "leases"},
		"leader-elect-resource-name":      {"n", func(c *options.Config) any { return c.LeaderElection.ResourceName }, "n"},
		"leader-elect-resource-namespace": {"ns", func(c *options.Config) any { return c.LeaderElection.ResourceNamespace }, "ns"},

		"etcd-ca-secret":          {"a/b", func(c *options.Config) any { return c.EtcdCA.CA.String() }, "a/b"},
		"etcd-cert-secret":        {"a/b", func(c *options.Config) any { return c.EtcdCA.Member.String() }, "a/b"},
		"etcd-client-cert-secret": {"a/b", func(c *options.Config) any { return c.EtcdCA.Client.String() }, "a/b"},
		"etcd-cert-hosts":         {"a,192.0.2.1", func(c *options.Config) any { return strings.Join(c.EtcdCA.Hosts, " ") }, "other a 192.0.2.1"},
		"etcd-cert-lifetime":      {"1h", func(c *options.Config) any { return c.EtcdCA.Lifetime }, time.Hour},

		"log-flush-frequency":       {value: skip},
		"log-json-info-buffer-size": {value: skip},
		"log-json-split-stream":     {value: skip},
		"log-text-info-buffer-size": {value: skip},
		"log-text-split-stream":     {value: skip},
		"logging-format":            {value: skip},
		"v":                         {value: skip},
		"vmodule":                   {value: skip},
		"version":                   {value: skip},
		"help":                      {value: skip},
	}
	seen := map[string]bool{}
	NewCommand(Run).Flags().VisitAll(func(f *pflag.Flag) {
		seen[f.Name] = true
		tc, ok := table[f.Name]
		switch {
		case !ok:
			t.Errorf("--%s is not in the table", f.Name)
		case tc.value == skip:
		case tc.value == f.DefValue && f.Name != "leader-elect-resource-lock": // which has one value only
			t.Errorf("--%s: %s is the default", f.Name, tc.value)
		default:
			var args []string
			if strings.HasPrefix(f.Name, "etcd-") { // which need one another
				args = []string{"--etcd-ca-secret=n/ca", "--etcd-cert-secret=n/member", "--etcd-client-cert-secret=n/client", "--etcd-cert-hosts=other"}
			}
			args = append(args, "--"+f.Name+"="+tc.value)
			if f.Name != "kubeconfig" {
				args = append(args, "--kubeconfig="+writeKubeconfig(t, "https://127.0.0.1:1"))
			}
			config, err := configOf(t, args...)
			if err != nil {
				t.Errorf("%v: %v", args, err)
				return
			}
			if diff := cmp.Diff(tc.want, tc.got(config)); diff != "" {
				t.Errorf("--%s: %s", f.Name, diff)
			}
		}
	})
	for name := range table {
		if !seen[name] {
			t.Errorf("--%s is in the table but does not exist", name)
		}
	}
}

func TestInvalidFlags(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	kubeconfig := "--kubeconfig=" + writeKubeconfig(t, "https://127.0.0.1:1")
	etcd := []string{kubeconfig, "--etcd-ca-secret=n/ca", "--etcd-cert-secret=n/member", "--etcd-client-cert-secret=n/client", "--etcd-cert-hosts=a"}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "pass --kubeconfig=FILE"},
		{[]string{"--kubeconfig=/does/not/exist"}, "--kubeconfig=/does/not/exist: "},
		{[]string{"--kubeconfig=" + broken}, "--kubeconfig=" + broken},
		{[]string{kubeconfig, "--nonsense"}, "unknown flag: --nonsense"},
		{[]string{kubeconfig, "argument"}, `"argument"`},
		{[]string{kubeconfig, "--concurrent-namespace-syncs=0"}, "--concurrent-namespace-syncs: must be at least 1, not 0"},
		{[]string{kubeconfig, "--concurrent-namespace-syncs=x"}, "--concurrent-namespace-syncs"},
		{[]string{kubeconfig, "--kube-api-qps=0"}, "--kube-api-qps: must not be 0"},
		{[]string{kubeconfig, "--kube-api-qps=5", "--kube-api-burst=0"}, "--kube-api-burst: must be at least 1"},
		{[]string{kubeconfig, "--purge-api-groups=apps"}, "--purge-api-groups: must include tenancy.borough.io"},
		{[]string{kubeconfig, "--purge-api-groups=tenancy.borough.io,A"}, `--purge-api-groups: "A": `},
		{[]string{kubeconfig, "--http-bind-address=10280"}, "--http-bind-address: "},
		{[]string{kubeconfig, "--http-bind-address=host:1"}, `--http-bind-address: "host" is not an IP address`},
		{[]string{kubeconfig, "--http-bind-address=127.0.0.1:70000"}, `--http-bind-address: "70000" is not a port`},
		{[]string{kubeconfig, "--leader-elect-resource-lock=endpoints"}, `--leader-elect-resource-lock: must be "leases", not "endpoints"`},
		{[]string{kubeconfig, "--leader-elect-resource-name=A"}, "--leader-elect-resource-name"},
		{[]string{kubeconfig, "--leader-elect-resource-namespace=a.b"}, "--leader-elect-resource-namespace"},
		{[]string{kubeconfig, "--leader-elect-retry-period=0"}, "--leader-elect-retry-period"},
		{[]string{kubeconfig, "--leader-elect-renew-deadline=2s"}, "--leader-elect-renew-deadline"},
		{[]string{kubeconfig, "--leader-elect-lease-duration=10s"}, "--leader-elect-lease-duration"},
		{[]string{kubeconfig, "--leader-elect-lease-duration=10900ms"}, "--leader-elect-lease-duration"},
		{[]string{kubeconfig, "--logging-format=nonsense"}, "nonsense"},
		{[]string{kubeconfig, "--etcd-ca-secret=ca"}, `--etcd-ca-secret must be NAMESPACE/NAME, not "ca"`},
		{[]string{kubeconfig, "--etcd-ca-secret=n/ca"}, `--etcd-cert-secret must be NAMESPACE/NAME, not ""`},
		{[]string{kubeconfig, "--etcd-client-cert-secret=n/client"}, `--etcd-ca-secret must be NAMESPACE/NAME, not ""`},
		{append(slices.Clip(etcd), "--etcd-cert-secret=n/ca"), "must be different Secrets"},
		{etcd[:4], "--etcd-cert-hosts is required"},
		{[]string{kubeconfig, "--etcd-cert-hosts=a"}, "--etcd-cert-hosts and --etcd-cert-lifetime need --etcd-ca-secret"},
		{[]string{kubeconfig, "--etcd-cert-lifetime=1h"}, "--etcd-cert-hosts and --etcd-cert-lifetime need --etcd-ca-secret"},
		{append(slices.Clip(etcd), "--etcd-cert-hosts=a:2379"), `--etcd-cert-hosts: "a:2379": `},
		{append(slices.Clip(etcd), "--etcd-cert-lifetime=29s"), "--etcd-cert-lifetime must be at least 30s, not 29s"},
	} {
		_, err := configOf(t, tc.args...)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: got %v, want one line with %q", tc.args, err, tc.want)
		}
	}
}

// TestHelp shows that help describes every flag and starts nothing.
func TestHelp(t *testing.T) {
	cmd := NewCommand(func(context.Context, *options.Config) error {
		t.Error("run")
		return nil
	})
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--help"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(out.String(), "--"+f.Name) {
			t.Errorf("--%s is not in the help", f.Name)
		}
		if f.Usage == "" {
			t.Errorf("--%s has no description", f.Name)
		}
	})
}
