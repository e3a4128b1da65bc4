// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/borough-io/borough/test/poll"
)

const (
	// lifetimeFlag is the flag of the controller for the lifetime of the
	// certificates of etcd.
	lifetimeFlag = "--etcd-cert-lifetime="
	// shortLifetime leaves the kubelet time to update the files in Pods.
	shortLifetime = "300s"
)

// etcdSecrets have the certificates of the members of etcd and of its clients.
var etcdSecrets = []string{"borough-etcd-tls", "borough-etcd-client-tls"}

// renewCertificates has the certificates of etcd replaced by short ones and those by
// long ones, under load. It ends when the short ones have expired, so that a process
// that still has one fails.
func (s *site) renewCertificates(t *testing.T) {
	l := s.startLoad(t)
	before := s.certificates(t)
	lifetime := s.setLifetime(t, shortLifetime)
	s.awaitRollout(t, controller)
	short := s.awaitCertificates(t, before)
	var expire time.Time
	for name, certificate := range short {
		t.Logf("%s: serial %x, until %s", name, certificate.SerialNumber, certificate.NotAfter)
		if certificate.NotAfter.After(expire) {
			expire = certificate.NotAfter
		}
	}
	// Its connections to and from the other members use the new certificate.
	s.replace(t, etcd, "borough-etcd-0")
	l.awaitServed(t)

	s.setLifetime(t, lifetime)
	s.awaitRollout(t, controller)
	for name, certificate := range s.awaitCertificates(t, short) {
		t.Logf("%s: serial %x, until %s", name, certificate.SerialNumber, certificate.NotAfter)
	}
	if err := poll.Sleep(t.Context(), time.Until(expire)); err != nil {
		t.Fatal(err)
	}
	// All connections of one member are new.
	s.replace(t, etcd, "borough-etcd-0")
	rules := planned
	if s.members == 1 {
		rules = outage
	}
	l.finish(t, rules)
}

// setLifetime changes the lifetime of the certificates, and returns the previous one.
func (s *site) setLifetime(t *testing.T, lifetime string) (previous string) {
	t.Helper()
	deployments := s.client.AppsV1().Deployments(systemNamespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		deployment, err := deployments.Get(t.Context(), "borough-controller-manager", metav1.GetOptions{})
		if err != nil {
			return err
		}
		args := deployment.Spec.Template.Spec.Containers[0].Args
		i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, lifetimeFlag) })
		if i < 0 {
			return fmt.Errorf("the controller has no %s", lifetimeFlag)
		}
		previous, args[i] = strings.TrimPrefix(args[i], lifetimeFlag), lifetimeFlag+lifetime
		_, err = deployments.Update(t.Context(), deployment, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return previous
}

// awaitCertificates waits until all certificates have other serial numbers.
func (s *site) awaitCertificates(t *testing.T, before map[string]*x509.Certificate) (after map[string]*x509.Certificate) {
	t.Helper()
	err := poll.Until(t.Context(), timeout, func(context.Context) error {
		after = s.certificates(t)
		for name, certificate := range after {
			if certificate.SerialNumber.Cmp(before[name].SerialNumber) == 0 {
				return errors.New(name + " has the same certificate as before")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return after
}

// certificates returns the certificates of etcd by Secret.
func (s *site) certificates(t *testing.T) map[string]*x509.Certificate {
	t.Helper()
	certificates := map[string]*x509.Certificate{}
	for _, name := range etcdSecrets {
		secret, err := s.client.CoreV1().Secrets(systemNamespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
		if block == nil {
			t.Fatalf("Secret %s has no certificate", name)
		}
		if certificates[name], err = x509.ParseCertificate(block.Bytes); err != nil {
			t.Fatalf("Secret %s: %v", name, err)
		}
	}
	return certificates
}
