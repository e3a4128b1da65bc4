// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/borough-io/borough/pkg/certificates"
	"github.com/borough-io/borough/pkg/standalone"
)

// TestClientCAsAreParsedOnce sends a certificate of no CA to a server with a large
// --client-ca-file. Any client can do that, as often as it likes.
func TestClientCAsAreParsedOnce(t *testing.T) {
	dir := t.TempDir()
	pki, err := standalone.EnsurePKI(filepath.Join(dir, "pki"), []string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	var cas []*x509.Certificate
	for i := range 100 {
		ca, err := certificates.NewCA(fmt.Sprint("ca-", i), time.Now(), time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		cas = append(cas, ca.Cert)
	}
	bundle, err := certutil.EncodeCertificates(cas[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	o := New()
	o.Authentication.ClientCert.ClientCA = filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(o.Authentication.ClientCert.ClientCA, bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	generic := o.newGenericConfig()
	generic.SecureServing, generic.LoopbackClientConfig = &genericapiserver.SecureServingInfo{}, &rest.Config{}
	if err := o.applyStandalone(generic, pki, o.newStandaloneConfig()); err != nil {
		t.Fatal(err)
	}
	request := (&http.Request{TLS: &tls.ConnectionState{PeerCertificates: cas[:1]}}).WithContext(t.Context())
	allocations := testing.AllocsPerRun(10, func() {
		if _, ok, err := generic.Authentication.Authenticator.AuthenticateRequest(request); ok || err == nil {
			t.Errorf("got %v, %v", ok, err)
		}
	})
	// To parse the CAs takes some 5,000.
	if allocations > 500 {
		t.Errorf("%v allocations, want 500 at most", allocations)
	}
}

// TestCAExpires starts with CAs that expire within a year, and later.
func TestCAExpires(t *testing.T) {
	const day = 24 * time.Hour
	for _, tc := range []struct {
		days int
		want bool
	}{
		{days: 1, want: true},
		{days: 364, want: true},
		{days: 366},
	} {
		t.Run(fmt.Sprint(tc.days), func(t *testing.T) {
			o := New()
			o.Standalone, o.DataDir, o.EphemeralEtcd = true, t.TempDir(), true
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			o.SecureServing.Listener = listener
			dir, err := certificates.NewDirectory(filepath.Join(o.DataDir, PKIDir), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := dir.EnsureCA("ca", time.Duration(tc.days)*day); err != nil {
				t.Fatal(err)
			}
			logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
			d, err := o.Open(klog.NewContext(t.Context(), logger))
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			logged := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
			if got := strings.Contains(logged, "The CA expires soon"); got != tc.want {
				t.Errorf("the server logs that the CA expires: %t, want %t, in:\n%s", got, tc.want, logged)
			}
		})
	}
}

// TestAdvertiseAddress advertises the address of a flag instead of that of the server. Clients
// can verify the server by it.
func TestAdvertiseAddress(t *testing.T) {
	for flag, want := range map[string]string{"": "127.0.0.1", "192.0.2.1": "192.0.2.1"} {
		o := New()
		o.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)
		o.Server.AdvertiseAddress = net.ParseIP(flag)
		pki, err := standalone.EnsurePKI(filepath.Join(t.TempDir(), "pki"), o.servingHosts())
		if err != nil {
			t.Fatal(err)
		}
		generic := o.newGenericConfig()
		generic.SecureServing, generic.LoopbackClientConfig = &genericapiserver.SecureServingInfo{}, &rest.Config{}
		if err := o.Server.ApplyTo(&generic.Config); err != nil {
			t.Fatal(err)
		}
		if err := o.applyStandalone(generic, pki, o.newStandaloneConfig()); err != nil {
			t.Fatal(err)
		}
		if got := generic.PublicAddress.String(); got != want || !slices.Contains(o.servingHosts(), want) {
			t.Errorf("--advertise-address=%s: advertises %s, and the certificate is for %v", flag, got, o.servingHosts())
		}
	}
}
