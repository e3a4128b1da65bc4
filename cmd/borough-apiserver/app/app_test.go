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

	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/borough-io/borough/cmd/borough-apiserver/app/options"
)

// run executes the command and returns the options that it would serve with.
func run(t testing.TB, args ...string) (*options.Options, error) {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	var got *options.Options
	cmd := NewCommand(func(_ context.Context, o *options.Options) error {
		got = o
		return nil
	})
	cmd.SetOut(&bytes.Buffer{})
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(context.Background())
	if err == nil && got == nil {
		err = errors.New("the command did not run and returned no error")
	}
	return got, err
}

func TestDefaultsStandalone(t *testing.T) {
	o, err := run(t, "--standalone")
	if err != nil {
		t.Fatal(err)
	}
	if got := o.SecureServing.BindAddress.String(); got != "127.0.0.1" {
		t.Errorf("bind address %s", got)
	}
	if o.SecureServing.BindPort != 6443 || o.DataDir != ".borough" || !o.Storage.Embedded() {
		t.Errorf("port %d, data dir %q, embedded etcd %v", o.SecureServing.BindPort, o.DataDir, o.Storage.Embedded())
	}
	if o.Features.EnablePriorityAndFairness {
		t.Error("priority and fairness is enabled with --standalone")
	}
	if o.Storage.Etcd.EnableGarbageCollection {
		t.Error("deletes wait for a garbage collector with --standalone")
	}
	for _, feature := range []featuregate.Feature{features.ConcurrentWatchObjectDecode, features.ListFromCacheSnapshot, features.ConstrainedImpersonation} {
		if utilfeature.DefaultFeatureGate.Enabled(feature) {
			t.Errorf("the feature %s is enabled", feature)
		}
	}
	if got := o.Storage.Etcd.DefaultStorageMediaType; got != "application/vnd.kubernetes.protobuf" {
		t.Errorf("storage media type %s", got)
	}
}

// TestDefaultLimits checks the defaults that docs/capacity.md documents.
func TestDefaultLimits(t *testing.T) {
	for _, args := range [][]string{{"--standalone"}, {"--kubeconfig=k", "--etcd-servers=https://127.0.0.1:2379"}} {
		o, err := run(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		if reads, writes := o.Server.MaxRequestsInFlight, o.Server.MaxMutatingRequestsInFlight; reads != 400 || writes != 200 {
			t.Errorf("%v: %d reads, %d writes in flight", args, reads, writes)
		}
		if request, watch := o.Server.RequestTimeout, o.Server.MinRequestTimeout; request != time.Minute || watch != 1800 {
			t.Errorf("%v: request timeout %s, minimum timeout of a watch %d s", args, request, watch)
		}
		if streams := o.SecureServing.HTTP2MaxStreamsPerConnection; streams != 1000 {
			t.Errorf("%v: %d streams per connection", args, streams)
		}
	}
}

func TestDefaultsInCluster(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	o, err := run(t, "--kubeconfig="+kubeconfig, "--etcd-servers=https://127.0.0.1:2379")
	if err != nil {
		t.Fatal(err)
	}
	if got := o.SecureServing.BindAddress.String(); got != "0.0.0.0" {
		t.Errorf("bind address %s", got)
	}
	if o.Authentication.RemoteKubeConfigFile != kubeconfig || o.Authorization.RemoteKubeConfigFile != kubeconfig {
		t.Errorf("kubeconfig for authentication %q, for authorization %q", o.Authentication.RemoteKubeConfigFile, o.Authorization.RemoteKubeConfigFile)
	}
	if !o.Features.EnablePriorityAndFairness || o.Storage.Embedded() {
		t.Errorf("priority and fairness %v, embedded etcd %v", o.Features.EnablePriorityAndFairness, o.Storage.Embedded())
	}
	if tokens, allowed, denied := o.Authentication.CacheTTL, o.Authorization.AllowCacheTTL, o.Authorization.DenyCacheTTL; tokens != 10*time.Second || allowed != tokens || denied != tokens {
		t.Errorf("reviews are cached for %s (tokens), %s (allowed), %s (denied)", tokens, allowed, denied)
	}
	o, err = run(t, "--kubeconfig="+kubeconfig, "--authentication-kubeconfig=a", "--authorization-kubeconfig=b")
	if err != nil {
		t.Fatal(err)
	}
	if o.Authentication.RemoteKubeConfigFile != "a" || o.Authorization.RemoteKubeConfigFile != "b" {
		t.Errorf("kubeconfig for authentication %q, for authorization %q", o.Authentication.RemoteKubeConfigFile, o.Authorization.RemoteKubeConfigFile)
	}
}

// TestFlagsSetOptions sets flags of Borough, and one flag of each group that the
// library adds, to a value that is not the default.
func TestFlagsSetOptions(t *testing.T) {
	for _, tc := range []struct {
		flag string
		got  func(*options.Options) any
		want any
	}{
		{"--data-dir=/x", func(o *options.Options) any { return o.DataDir }, "/x"},
		{"--bind-address=127.0.0.2", func(o *options.Options) any { return o.SecureServing.BindAddress.String() }, "127.0.0.2"},
		{"--external-hostname=Borough.example", func(o *options.Options) any { return o.Server.ExternalHost }, "Borough.example"},
		{"--external-hostname=2001:db8::1", func(o *options.Options) any { return o.Server.ExternalHost }, "2001:db8::1"},
		{"--secure-port=1234", func(o *options.Options) any { return o.SecureServing.BindPort }, 1234},
		{"--etcd-prefix=/x", func(o *options.Options) any { return o.Storage.Etcd.StorageConfig.Prefix }, "/x"},
		{"--delete-collection-workers=3", func(o *options.Options) any { return o.Storage.Etcd.DeleteCollectionWorkers }, 3},
		{"--max-requests-inflight=7", func(o *options.Options) any { return o.Server.MaxRequestsInFlight }, 7},
		{"--shutdown-watch-termination-grace-period=9s", func(o *options.Options) any { return o.Server.ShutdownWatchTerminationGracePeriod.String() }, "9s"},
		{"--client-ca-file=x", func(o *options.Options) any { return o.Authentication.ClientCert.ClientCA }, "x"},
		{"--anonymous-auth=false", func(o *options.Options) any { return o.BuiltInAuthentication.Anonymous }, false},
		{"--token-auth-file=x", func(o *options.Options) any { return o.BuiltInAuthentication.TokenFile }, "x"},
		{"--authentication-config=x", func(o *options.Options) any { return o.BuiltInAuthentication.ConfigFile }, "x"},
		{"--authorization-always-allow-paths=/x", func(o *options.Options) any { return o.Authorization.AlwaysAllowPaths[0] }, "/x"},
		{"--disable-admission-plugins=LimitRanger", func(o *options.Options) any { return o.Admission.DisablePlugins[0] }, "LimitRanger"},
		{"--etcd-quota-backend-bytes=67108864", func(o *options.Options) any { return o.Storage.QuotaBytes }, int64(67108864)},
		{"--profiling=false", func(o *options.Options) any { return o.Features.EnableProfiling }, false},
	} {
		o, err := run(t, "--standalone", tc.flag)
		if err != nil {
			t.Errorf("%s: %v", tc.flag, err)
			continue
		}
		if got := tc.got(o); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.flag, got, tc.want)
		}
	}
}

func TestInvalidFlags(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "pass --standalone to run without a cluster, or --kubeconfig=FILE"},
		{[]string{"--standalone", "--kubeconfig=x"}, "--kubeconfig needs a cluster"},
		{[]string{"--standalone", "--authentication-kubeconfig=x"}, "--authentication-kubeconfig needs a cluster"},
		{[]string{"--standalone", "--couple-cluster-namespaces"}, "--couple-cluster-namespaces needs a cluster"},
		{[]string{"--standalone", "--serving-cert-secret=a/b"}, "--serving-cert-secret needs a cluster"},
		{[]string{"--kubeconfig=x", "--serving-cert-secret=a"}, `--serving-cert-secret must be NAMESPACE/NAME, not "a"`},
		{[]string{"--kubeconfig=x", "--serving-cert-secret=a/b", "--serving-cert-service=a/"}, `--serving-cert-service must be NAMESPACE/NAME, not "a/"`},
		{[]string{"--kubeconfig=x", "--serving-cert-secret=a/b", "--serving-cert-lifetime=1s"}, "--serving-cert-lifetime must be at least 30s"},
		{[]string{"--kubeconfig=x", "--serving-cert-secret=a/b", "--tls-cert-file=x", "--tls-private-key-file=y"}, "cannot be used together"},
		{[]string{"--kubeconfig=x", "--serving-cert-secret=a/b", "--tls-private-key-file=y"}, "cannot be used together"},
		{[]string{"--kubeconfig=x", "--tls-cert-file=x", "--tls-private-key-file=y", "--cert-dir=z"}, "--cert-dir and --tls-cert-file cannot be used together"},
		{[]string{"--kubeconfig=x", "--serving-cert-secret=a/b", "--cert-dir=z"}, "--cert-dir and --serving-cert-secret cannot be used together"},
		{[]string{"--standalone", "--tls-cert-file=x"}, "--tls-cert-file and --tls-private-key-file must be set together"},
		{[]string{"--kubeconfig=x", "--tls-private-key-file=x"}, "--tls-cert-file and --tls-private-key-file must be set together"},
		{[]string{"--standalone", "--requestheader-client-ca-file=x"}, "--requestheader-client-ca-file needs a cluster"},
		{[]string{"--kubeconfig=x", "--anonymous-auth=false"}, "--anonymous-auth needs --standalone"},
		{[]string{"--kubeconfig=x", "--token-auth-file=x"}, "--token-auth-file needs --standalone"},
		{[]string{"--kubeconfig=x", "--authentication-config=x"}, "--authentication-config needs --standalone"},
		{[]string{"--standalone", "--enable-priority-and-fairness"}, "--enable-priority-and-fairness"},
		{[]string{"--standalone", "--enable-admission-plugins=ValidatingAdmissionWebhook"}, "ValidatingAdmissionWebhook is configured by objects of a cluster"},
		{[]string{"--standalone", "--enable-admission-plugins=Nonsense"}, `"Nonsense" is unknown`},
		{[]string{"--standalone", "--max-namespaces-per-user=-1"}, "--max-namespaces-per-user must not be negative"},
		{[]string{"--standalone", "--event-ttl=59s"}, "--event-ttl must be at least 1m0s, but is 59s"},
		{[]string{"--standalone", "--max-namespaces-per-user=x"}, "--max-namespaces-per-user"},
		{[]string{"--kubeconfig=x", "--couple-cluster-namespaces", "--cluster-namespace-controllers="}, "--couple-cluster-namespaces needs --cluster-namespace-controllers"},
		{[]string{"--kubeconfig=x", "--default-limits=false"}, "--default-limits needs --standalone"},
		{[]string{"--kubeconfig=x", "--serving-cert-service=a/b"}, "--serving-cert-service needs --serving-cert-secret"},
		{[]string{"--kubeconfig=x", "--max-namespaces-per-user=1"}, "--max-namespaces-per-user needs --standalone"},
		{[]string{"--standalone", "--serve-projects"}, "--serve-projects needs a cluster"},
		{[]string{"--standalone", "--data-dir="}, "--data-dir"},
		{[]string{"--standalone", "--secure-port=0"}, "--secure-port"},
		{[]string{"--standalone", "--request-timeout=0"}, "--request-timeout must not be 0"},
		{[]string{"--standalone", "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}, "--tls-cipher-suites must contain TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
		{[]string{"--standalone", "--secure-port=70000"}, "secure-port"},
		{[]string{"--standalone", "--secure-port=x"}, "--secure-port"},
		{[]string{"--standalone", "--external-hostname=https://borough.example"}, `--external-hostname must be a DNS name or an IP address, not "https://borough.example"`},
		{[]string{"--standalone", "--external-hostname=borough.example:443"}, `--external-hostname must be a DNS name or an IP address, not "borough.example:443"`},
		{[]string{"--standalone", "--external-hostname=bücher.example"}, `--external-hostname must be a DNS name or an IP address, not "bücher.example"`},
		{[]string{"--standalone", "--etcd-servers="}, "--etcd-servers must not be empty"},
		{[]string{"--kubeconfig=x", "--etcd-servers="}, "--etcd-servers must not be empty"},
		{[]string{"--standalone", "--etcd-cafile=x"}, "--etcd-cafile needs --etcd-servers"},
		{[]string{"--standalone", "--storage-media-type=text/plain"}, "--storage-media-type"},
		{[]string{"--standalone", "--nonsense"}, "--nonsense"},
		{[]string{"--standalone", "argument"}, `"argument"`},
	} {
		_, err := run(t, tc.args...)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: got %v, want one line with %q", tc.args, err, tc.want)
		}
	}
}

// TestAdmissionPlugins checks the order of the admission chain.
func TestAdmissionPlugins(t *testing.T) {
	o := options.New()
	want := []string{"NamespaceLifecycle", "LimitRanger", "OwnerReferencesPermissionEnforcement", "MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook", "ResourceQuota"}
	if got := o.Admission.RecommendedPluginOrder; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// TestAdmissionConfig starts with sections of an admission configuration, of which those
// without an effect are refused.
func TestAdmissionConfig(t *testing.T) {
	webhook := "{name: ValidatingAdmissionWebhook, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: k}}"
	file := func(plugins string) string {
		return "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [" + plugins + "]\n"
	}
	for _, tc := range []struct {
		name, mode, content, want string
	}{
		{"none", "--standalone", file(""), ""},
		{"a webhook", "--kubeconfig=k", file(webhook), ""},
		{"a webhook that is off", "--standalone", file(webhook), ": ValidatingAdmissionWebhook is configured by objects of a cluster and cannot be used with --standalone"},
		{"no configuration", "--standalone", file("{name: ResourceQuota}"), ""},
		{"limited resources", "--kubeconfig=k", file("{name: ResourceQuota, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration, limitedResources: []}}"), ": ResourceQuota takes no configuration"},
		{"in another file", "--standalone", file("{name: LimitRanger, path: x}"), ": LimitRanger takes no configuration"},
		{"unknown", "--kubeconfig=k", file(webhook + ", {name: PodSecurity}"), ": PodSecurity is not a plugin of this server"},
		{"another kind", "--standalone", "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n", ": the kind must be AdmissionConfiguration, not TracingConfiguration"},
		{"no version", "--standalone", "kind: AdmissionConfiguration\nplugins: []\n", ": the apiVersion must be apiserver.config.k8s.io/v1"},
		{"another format", "--standalone", "imagePolicy: {}\n", ": the kind must be AdmissionConfiguration"},
		{"an unknown field", "--standalone", file("") + "plugin: []\n", `unknown field "plugin"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "admission.yaml")
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := run(t, tc.mode, "--admission-control-config-file="+path)
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "--admission-control-config-file: "+path+": ") || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with the flag, the file and %q", err, tc.want)
			}
		})
	}
	if _, err := run(t, "--standalone", "--admission-control-config-file=/absent"); err == nil || !strings.Contains(err.Error(), "--admission-control-config-file: open /absent: ") {
		t.Errorf("without the file: %v", err)
	}
}

// TestStartFails runs the server with a data directory that it cannot create.
func TestStartFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := NewCommand(Run)
	cmd.SetArgs([]string{"--standalone", "--data-dir=" + file})
	err := cmd.ExecuteContext(context.Background())
	if err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line that names %s", err, file)
	}
}

// TestStoppedWhileItStarts stops the server before etcd is ready, which is not a failure.
func TestStoppedWhileItStarts(t *testing.T) {
	if err := logsapi.ResetForTest(nil); err != nil { // Run sets up logging
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	cmd := NewCommand(Run)
	cmd.SetArgs([]string{"--standalone", "--data-dir=" + t.TempDir()})
	if err := cmd.ExecuteContext(ctx); err != nil {
		t.Errorf("got %v", err)
	}
}
