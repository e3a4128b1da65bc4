// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig/controller"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/version"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/test/poll"
)

// writeEncryption writes a config of encryption with the keys of these names, of
// which the first is the one to write with. Namespaces have another provider than the rest.
func writeEncryption(t *testing.T, file string, names ...string) {
	t.Helper()
	var keys []string
	for _, name := range names {
		secret := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(name[:1]), 32))
		keys = append(keys, fmt.Sprintf("{name: %s, secret: %s}", name, secret))
	}
	config := strings.ReplaceAll(`apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [namespaces.tenancy.borough.io]
  providers: [{secretbox: {keys: [KEYS]}}]
- resources: ["*.tenancy.borough.io"]
  providers: [{aesgcm: {keys: [KEYS]}}]
`, "KEYS", strings.Join(keys, ", "))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestEncryption shows that the fence also reads encrypted values.
func TestEncryption(t *testing.T) {
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	writeEncryption(t, file, "one")
	for _, reload := range []bool{false, true} {
		t.Run(fmt.Sprintf("reload=%t", reload), func(t *testing.T) {
			encrypted := func(o *storage.Options) {
				o.Etcd.EncryptionProviderConfigFilepath = file
				o.Etcd.EncryptionProviderConfigAutomaticReload = reload
			}
			onBoth(t, encrypted, func(t *testing.T, s server) {
				s.createNamespace(t, "town")
				s.createPod(t, "town", "p")
				for key, provider := range map[string]string{"namespaces/town": "secretbox", "pods/town/p": "aesgcm"} {
					if value := s.raw(t, "/registry/tenancy.borough.io/"+key); !bytes.HasPrefix(value, []byte("k8s:enc:"+provider+":v1:one:")) {
						t.Errorf("%s is not encrypted: %q", key, value)
					}
				}
				terminate(t, s, "town")
				pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "town", Name: "q"}}
				_, err := s.Pods.Create(in(t.Context(), "town"), pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
				if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
					t.Errorf("creating in a terminating namespace: got %v, want Forbidden", err)
				}
			})
		})
	}
}

// TestEncryptionReload exchanges the key under a server that runs.
func TestEncryptionReload(t *testing.T) {
	period := controller.EncryptionConfigFileChangePollDuration
	controller.EncryptionConfigFileChangePollDuration = 20 * time.Millisecond
	t.Cleanup(func() { controller.EncryptionConfigFileChangePollDuration = period })
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	encrypted := func(o *storage.Options) {
		writeEncryption(t, file, "one")
		o.Etcd.EncryptionProviderConfigFilepath = file
		o.Etcd.EncryptionProviderConfigAutomaticReload = true
	}
	onBoth(t, encrypted, func(t *testing.T, s server) {
		run(t, s.Config)
		s.createNamespace(t, "town")
		s.createPod(t, "town", "before")
		writeEncryption(t, file, "two", "one")
		n := 0
		poll.Eventually(t, func() string {
			// The fence still reads the Namespace, which has the first key.
			name := fmt.Sprintf("p%d", n)
			n++
			s.createPod(t, "town", name)
			if value := s.raw(t, "/registry/tenancy.borough.io/pods/town/"+name); !bytes.HasPrefix(value, []byte("k8s:enc:aesgcm:v1:two:")) {
				return fmt.Sprintf("%s is encrypted with another key: %q", name, value)
			}
			return ""
		})
		// A write without a change encrypts the object with the new key.
		pod, err := s.Pods.Get(in(t.Context(), "town"), "before", &metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Pods.Update(in(t.Context(), "town"), "before", rest.DefaultUpdatedObjectInfo(pod), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if value := s.raw(t, "/registry/tenancy.borough.io/pods/town/before"); !bytes.HasPrefix(value, []byte("k8s:enc:aesgcm:v1:two:")) {
			t.Errorf("a Pod that was written again has its old key: %q", value)
		}
		terminate(t, s, "town")
		pod = &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "town", Name: "late"}}
		if _, err := s.Pods.Create(in(t.Context(), "town"), pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			t.Errorf("creating in a terminating namespace: got %v, want Forbidden", err)
		}
	})
}

// run runs a server until the test ends.
func run(t *testing.T, config *genericapiserver.Config) {
	t.Helper()
	serving := options.NewSecureServingOptions()
	serving.BindAddress, serving.BindPort, serving.Required = net.IPv4(127, 0, 0, 1), 0, false
	serving.ServerCert.CertDirectory = t.TempDir()
	var err error
	if serving.Listener, serving.BindPort, err = options.CreateListener("tcp", "127.0.0.1:0", net.ListenConfig{}); err != nil {
		t.Fatal(err)
	}
	if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	if err := serving.WithLoopback().ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
		t.Fatal(err)
	}
	config.EffectiveVersion = compatibility.NewEffectiveVersionFromString(version.DefaultKubeBinaryVersion, "", "")
	server, err := config.Complete(nil).New("test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.PrepareRun().RunWithContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
