// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/poll"
)

// TestDefaults checks the defaults that differ from the library, and those that must not.
func TestDefaults(t *testing.T) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	storage.NewOptions().AddFlags(fs)
	got := map[string]string{}
	fs.VisitAll(func(f *pflag.Flag) { got[f.Name] = f.DefValue })
	want := map[string]string{
		"delete-collection-workers":                   "64",
		"enable-garbage-collector":                    "true",
		"default-watch-cache-size":                    "100",
		"encryption-provider-config":                  "",
		"encryption-provider-config-automatic-reload": "false",
		"etcd-cafile":                                 "",
		"etcd-certfile":                               "",
		"etcd-compaction-interval":                    "5m0s",
		"etcd-count-metric-poll-period":               "1m0s",
		"etcd-db-metric-poll-interval":                "30s",
		"etcd-healthcheck-timeout":                    "2s",
		"etcd-keyfile":                                "",
		"etcd-prefix":                                 "/registry",
		"etcd-quota-backend-bytes":                    "8589934592",
		"etcd-readycheck-timeout":                     "2s",
		"etcd-servers":                                "[]",
		"etcd-servers-overrides":                      "[]",
		"lease-reuse-duration-seconds":                "60",
		"storage-backend":                             "",
		"storage-media-type":                          runtime.ContentTypeProtobuf,
		"watch-cache":                                 "true",
		"watch-cache-sizes":                           "[]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags and defaults (-want +got):\n%s", diff)
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		flags string
		want  []string
	}{
		{flags: ""},
		{flags: "--etcd-servers=http://a:1,http://b:2 --etcd-cafile=ca --etcd-servers-overrides=/events#http://c:3"},
		{flags: "--etcd-cafile=ca", want: []string{"--etcd-cafile needs --etcd-servers"}},
		{flags: "--etcd-certfile=c --etcd-keyfile=k", want: []string{"--etcd-certfile needs --etcd-servers", "--etcd-keyfile needs --etcd-servers"}},
		{flags: "--etcd-servers-overrides=/events#http://c:3", want: []string{"--etcd-servers-overrides needs --etcd-servers"}},
		{flags: "--etcd-servers=http://a:1 --etcd-servers-overrides=events", want: []string{"--etcd-servers-overrides invalid"}},
		{flags: "--etcd-servers=a:1,https://[::1]:2,unix:///tmp/etcd.sock"},
		{flags: "--etcd-servers=http://a", want: []string{`--etcd-servers: "http://a" is not a URL like https://HOST:PORT`}},
		{flags: "--etcd-servers=a", want: []string{`--etcd-servers: "a" is not a URL`}},
		{flags: "--etcd-servers=https://:1", want: []string{`--etcd-servers: "https://:1" is not a URL`}},
		{flags: "--etcd-servers=ftp://a:1", want: []string{`--etcd-servers: "ftp://a:1" is not a URL`}},
		{flags: "--etcd-servers=http://a:1 --etcd-servers-overrides=/pods#http://b", want: []string{`--etcd-servers-overrides: "http://b" is not a URL`}},
		{flags: "--storage-backend=etcd2", want: []string{"--storage-backend invalid"}},
		{flags: "--storage-media-type=text/plain", want: []string{`--storage-media-type "text/plain" invalid`}},
		{flags: "--delete-collection-workers=0", want: []string{"--delete-collection-workers must be at least 1, not 0"}},
		{flags: "--lease-reuse-duration-seconds=0"},
		{flags: "--lease-reuse-duration-seconds=-1", want: []string{"--lease-reuse-duration-seconds must not be negative, but is -1"}},
		{flags: "--watch-cache-sizes=pods", want: []string{"--watch-cache-sizes: invalid value"}},
		{flags: "--encryption-provider-config-automatic-reload", want: []string{"must be set with --encryption-provider-config"}},
		{flags: "--etcd-healthcheck-timeout=0s", want: []string{"--etcd-healthcheck-timeout must be positive"}},
		{flags: "--etcd-servers=http://a:1 --etcd-compaction-interval=-1s", want: []string{"--etcd-compaction-interval must not be negative"}},
		{flags: "--etcd-servers=http://a:1 --etcd-compaction-interval=0"},
		{flags: "--etcd-compaction-interval=0", want: []string{"--etcd-compaction-interval must be positive"}},
		{flags: "--etcd-quota-backend-bytes=67108864"},
		{flags: "--etcd-quota-backend-bytes=67108863", want: []string{"--etcd-quota-backend-bytes must be at least 67108864, not 67108863"}},
		{flags: "--etcd-servers=http://a:1 --etcd-quota-backend-bytes=67108864", want: []string{"--etcd-quota-backend-bytes and --etcd-servers cannot be used together"}},
	} {
		t.Run(test.flags, func(t *testing.T) {
			options := parse(t, test.flags)
			var got []string
			for _, err := range options.Validate() {
				got = append(got, err.Error())
			}
			if len(got) != len(test.want) {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("got %q, want %q", got[i], want)
				}
			}
		})
	}
}

func parse(t *testing.T, flags string) *storage.Options {
	t.Helper()
	options := storage.NewOptions()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddFlags(fs)
	if err := fs.Parse(strings.Fields(flags)); err != nil {
		t.Fatal(err)
	}
	return options
}

func TestApplyToRefuses(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	unreadable := filepath.Join(t.TempDir(), "unreadable")
	if err := os.WriteFile(unreadable, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		flags  string
		change func(*storage.Config)
		want   string
	}{
		"no member":  {change: func(c *storage.Config) { c.Embedded = nil }, want: "exactly one of the embedded etcd and --etcd-servers is required"},
		"both":       {flags: "--etcd-servers=http://127.0.0.1:1", want: "exactly one of the embedded etcd and --etcd-servers is required"},
		"bad scheme": {change: func(c *storage.Config) { c.Scheme = runtime.NewScheme() }, want: `group "tenancy.borough.io" is not registered`},
		"too much": {change: func(c *storage.Config) {
			for range 128 {
				c.Namespaced = append(c.Namespaced, tenancy.Resource("pods"))
			}
		}, want: "more than the 127"},
		"encryption config": {flags: "--encryption-provider-config=" + unreadable, want: "--encryption-provider-config: "},
		"missing TLS file": {
			flags:  "--etcd-servers=https://127.0.0.1:1 --etcd-cafile=/does/not/exist",
			change: func(c *storage.Config) { c.Embedded = nil },
			want:   "read the TLS files for etcd: --etcd-cafile: open /does/not/exist",
		},
		"no certificate": {
			flags:  "--etcd-servers=https://127.0.0.1:1 --etcd-cafile=" + unreadable,
			change: func(c *storage.Config) { c.Embedded = nil },
			want:   "--etcd-cafile=" + unreadable + ": it has no certificate in PEM",
		},
		"split": {
			flags:  "--etcd-servers=http://127.0.0.1:1 --etcd-servers-overrides=tenancy.borough.io/pods#http://127.0.0.1:2",
			change: func(c *storage.Config) { c.Embedded = nil },
			want:   "--etcd-servers-overrides: pods.tenancy.borough.io and namespaces.tenancy.borough.io must be on the same etcd servers",
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := storagetest.NewConfig(member)
			if test.change != nil {
				test.change(&config)
			}
			options := parse(t, test.flags)
			options.Etcd.SkipHealthEndpoints = true
			_, err := options.ApplyTo(genericapiserver.NewConfig(serializer.NewCodecFactory(config.Scheme)), config)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestOverridesTogether stores all resources of the fence on other servers.
func TestOverridesTogether(t *testing.T) {
	other := storagetest.StartGRPC(t)
	var overrides []string
	for _, resource := range []string{"namespaces", "namespacetemplates", "limitranges", "pods", "resourcequotas"} {
		overrides = append(overrides, "tenancy.borough.io/"+resource+"#"+other)
	}
	options := parse(t, "--etcd-servers=http://127.0.0.1:1 --etcd-servers-overrides="+strings.Join(overrides, ","))
	s := server{Stores: storagetest.NewStores(t, options, storagetest.NewConfig(nil))}
	s.createNamespace(t, "town")
	s.createPod(t, "town", "p")
}

func TestEmbeddedHealth(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	c, _ := storagetest.NewServerConfig(t, storage.NewOptions(), storagetest.NewConfig(member))
	for _, endpoint := range []struct {
		name   string
		checks []healthz.HealthChecker
		want   []string
	}{
		{"healthz", c.HealthzChecks, []string{"etcd"}},
		{"livez", c.LivezChecks, []string{"etcd"}},
		{"readyz", c.ReadyzChecks, []string{"etcd", "etcd-readiness", "etcd-reached"}},
	} {
		got := map[string]bool{}
		for _, check := range endpoint.checks {
			got[check.Name()] = true
		}
		for _, want := range endpoint.want {
			if !got[want] {
				t.Errorf("%s has no check %s: %v", endpoint.name, want, got)
			}
		}
	}
	check := func() error {
		for _, check := range c.ReadyzChecks {
			if strings.HasPrefix(check.Name(), "etcd") {
				if err := check.Check(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	poll.Eventually(t, func() string {
		if err := check(); err != nil { // such as a timeout, on a busy machine
			return fmt.Sprintf("the member runs, but: %v", err)
		}
		return ""
	})
	if err := member.Close(); err != nil {
		t.Fatal(err)
	}
	if err := check(); err == nil {
		t.Error("the member is closed and reported as healthy")
	}
}

func TestEmbeddedSizeMetric(t *testing.T) {
	storagetest.NewServerConfig(t, storage.NewOptions(), storagetest.NewConfig(storagetest.StartEmbedded(t)))
	metrics.Register() // as a server does
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "apiserver_storage_size_bytes" {
			if size := family.GetMetric()[0].GetGauge().GetValue(); size <= 0 {
				t.Errorf("the database has %v bytes", size)
			}
			return
		}
	}
	t.Error("there is no apiserver_storage_size_bytes")
}

// TestCloseWhileWatched closes the member before the stores, which is the wrong order,
// while there are watches, and shows that nothing hangs.
func TestCloseWhileWatched(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	stores := storagetest.NewStores(t, storage.NewOptions(), storagetest.NewConfig(member))
	ctx, cancel := context.WithTimeout(in(t.Context(), "town"), time.Minute)
	defer cancel()
	w, err := stores.Pods.Watch(ctx, &metainternal.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := member.Close(); err != nil {
		t.Fatal(err)
	}
}
