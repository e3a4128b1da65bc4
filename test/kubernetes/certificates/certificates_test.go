// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/certificates"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// TestCertificates runs two servers with certificates that are valid for two
// minutes. It damages the Secret and the APIService, has a user who may write the
// Secret replace its content, and follows a rotation until the first CA is no longer
// trusted, while clients read, write and watch.
func TestCertificates(t *testing.T) {
	cluster := testcluster.New(t, testcluster.Options{Etcd: testcluster.EtcdOptions{Unsafe: true}})
	d := deploy(t, cluster, "--serving-cert-lifetime="+lifetime.String())
	secrets := d.client.CoreV1().Secrets(testcluster.SystemNamespace)
	clients, monitor := startLoad(t, cluster), d.startMonitor(t)
	first := monitor.awaitCert(t)

	// The clients keep sending requests during each step.
	t.Run("applied again", func(t *testing.T) {
		before := d.secret(t)
		version := before.ResourceVersion
		versions, err := secrets.Watch(t.Context(), metav1.SingleObject(metav1.ObjectMeta{Name: certSecret, ResourceVersion: version}))
		if err != nil {
			t.Fatal(err)
		}
		defer versions.Stop()
		d.apply(t, "--server-side")
		d.apply(t) // as kubectl apply does by default
		// A rotation begins in the second half of the lifetime.
		rotated := func() bool { return time.Now().After(certificates.AtShare(first, 0.5)) }
		for last := d.secret(t).ResourceVersion; version != last; {
			event := <-versions.ResultChan()
			secret, ok := event.Object.(*corev1.Secret)
			if !ok {
				t.Fatalf("the watch of the Secret reports %s: %v", event.Type, event.Object)
			}
			version = secret.ResourceVersion
			if !maps.EqualFunc(secret.Data, before.Data, bytes.Equal) && !rotated() {
				t.Errorf("version %s of the Secret has other data", version)
			}
			if _, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err != nil {
				t.Errorf("version %s of the Secret: %v", version, err)
			}
		}
	})
	t.Run("Secret deleted", func(t *testing.T) {
		if err := secrets.Delete(t.Context(), certSecret, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, s := range d.servers {
			await(t, "server to report it", func(context.Context) error {
				if !strings.Contains(s.process.Output(), "the Secret borough-system/borough-apiserver-tls does not exist; apply the manifests") {
					return errors.New("it has not logged that the Secret does not exist")
				}
				return nil
			})
		}
		d.apply(t, "--server-side")
		await(t, "Secret to be filled", d.inStep)
	})
	t.Run("Secret damaged", func(t *testing.T) {
		garbage := []byte(`{"data": {"tls.crt": "Z2FyYmFnZQ==", "tls.key": "Z2FyYmFnZQ==", "ca.crt": "Z2FyYmFnZQ=="}}`)
		if _, err := secrets.Patch(t.Context(), certSecret, "application/merge-patch+json", garbage, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		await(t, "Secret to be repaired", d.inStep)
	})
	for name, content := range hostileContents {
		t.Run("Secret with "+name, func(t *testing.T) {
			d.replaceSecret(t, content(t))
			await(t, "Secret to be restored", d.inStep)
		})
	}
	t.Run("rotated", func(t *testing.T) {
		monitor.awaitCert(t)
		await(t, "CA that expired to leave", func(ctx context.Context) error {
			trusted, err := d.trusted(ctx)
			if err == nil && slices.ContainsFunc(trusted, func(ca *x509.Certificate) bool { return first.CheckSignatureFrom(ca) == nil }) {
				err = errors.New("the CA of the first certificate is still in the caBundle")
			}
			return err
		})
		await(t, "servers to be in step", d.inStep)
	})
	monitor.stop(t)
	clients.stop(t)

	// A server that starts knows only what is in the Secret and in the APIService.
	for name, content := range hostileContents {
		t.Run("started with "+name, func(t *testing.T) {
			for _, s := range d.servers {
				s.stop(t)
			}
			d.replaceSecret(t, content(t))
			for _, s := range d.servers {
				s.start(t)
			}
			await(t, "servers to be in step", d.inStep)
			trusted, err := d.trusted(t.Context())
			if err == nil {
				err = trusted.check()
			}
			if err != nil {
				t.Error(err)
			}
			d.awaitAPI(t)
		})
	}

	// Until the server restores it, kube-apiserver can't verify any server.
	for name, caBundle := range map[string][]byte{
		"caBundle of garbage": []byte("garbage"),
		"caBundle of 300":     foreignCAs(t, 300),
		"no caBundle":         nil,
	} {
		t.Run(name, func(t *testing.T) {
			d.trust(t, caBundle)
			await(t, "caBundle to be repaired", d.inStep)
			if trusted, err := d.trusted(t.Context()); err != nil || len(trusted) > 3 {
				t.Errorf("the caBundle has %d CAs: %v", len(trusted), err)
			}
			d.awaitAPI(t)
		})
	}
}

// certMonitor continuously compares the servers' certificates with the CAs in
// the APIService.
type certMonitor struct {
	cancel   context.CancelFunc
	done     sync.WaitGroup
	certs    chan *x509.Certificate // each new certificate that all servers present
	failures testcluster.Failures
}

func (d *deployment) startMonitor(t *testing.T) *certMonitor {
	ctx, cancel := context.WithCancel(t.Context())
	l := &certMonitor{cancel: cancel, certs: make(chan *x509.Certificate, 100)}
	l.done.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		var last *x509.Certificate
		for ctx.Err() == nil {
			served, err := d.servedCert(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				l.failures.Add(err)
			case served != nil && (last == nil || !last.Equal(served)):
				last = served
				l.certs <- served
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	return l
}

// servedCert returns the certificate that all servers present, nil if they
// differ, and an error if the APIService does not trust one, neither before nor
// after it was presented: a rotation can be in between.
func (d *deployment) servedCert(ctx context.Context) (*x509.Certificate, error) {
	before, err := d.trusted(ctx)
	if err != nil {
		return nil, err
	}
	var all []*x509.Certificate
	for _, s := range d.servers {
		served, err := presented(ctx, s.address)
		if err != nil {
			return nil, err
		}
		all = append(all, served)
	}
	after, err := d.trusted(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(before.check(), after.check()); err != nil {
		return nil, err
	}
	for i, served := range all {
		if !before.trusts(served) && !after.trusts(served) {
			return nil, fmt.Errorf("the caBundle does not trust the certificate of %s from %s", d.servers[i].address, served.NotBefore)
		}
	}
	if slices.ContainsFunc(all, func(c *x509.Certificate) bool { return !c.Equal(all[0]) }) {
		return nil, nil
	}
	return all[0], nil
}

// awaitCert waits until all servers present a new certificate.
func (l *certMonitor) awaitCert(t *testing.T) *x509.Certificate {
	t.Helper()
	select {
	case cert := <-l.certs:
		t.Logf("new serving certificate, valid until %s", cert.NotAfter)
		return cert
	case <-time.After(timeout):
		t.Fatal("no new certificate is presented")
	}
	return nil
}

func (l *certMonitor) stop(t *testing.T) {
	t.Helper()
	l.cancel()
	l.done.Wait()
	l.failures.Report(t)
}
