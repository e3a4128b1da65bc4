// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdca issues the certificates of an etcd cluster, and renews them.
//
// Three Secrets, which the manifests create empty, have the CA with its key, the
// certificate that the members of etcd share, and the certificate of its clients. The CA
// is for this etcd only, because a client with a certificate that it has signed can
// read and write all data.
//
// Members and clients read their certificates from files again for each connection, but
// load the CA only when they start. So the CA keeps its key when it is renewed: what it
// signs verifies with the previous certificate of the CA and with the next one. For the
// same reason a CA is never replaced. If it is missing or cannot be used while there
// are certificates, the issuer reports it and changes nothing.
//
// Each write names the version that it is based on, so that of two issuers one wins.
package etcdca

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/certificates"
	"github.com/borough-io/borough/pkg/certificates/reconcile"
)

const (
	// caLifetime leaves years to restart members and clients with a renewed CA.
	caLifetime = 10 * 365 * 24 * time.Hour
	// renewCAShare and renewShare of its lifetime is when a CA, and another
	// certificate, is renewed.
	renewCAShare = 0.5
	renewShare   = 0.6

	// caCertKey is the key of the CA's certificate in the Secrets of the others, as
	// cert-manager has it.
	caCertKey = "ca.crt"
)

// Config has the names of the Secrets and the parameters of the certificates.
type Config struct {
	// CA has the certificate of the CA and its key. Member has that of the members,
	// and Client that of the clients; both have the CA's certificate, too. The keys are
	// those of cert-manager: tls.crt, tls.key and ca.crt.
	CA, Member, Client types.NamespacedName
	// Hosts are the DNS names and IP addresses of the members.
	Hosts []string
	// Lifetime of a certificate. The next one is issued after 60 % of it. The CA is
	// valid for ten years, and is renewed after five.
	Lifetime time.Duration
}

// Issuer issues and renews the certificates. One replica runs it.
type Issuer struct {
	config Config
	client kubernetes.Interface
	leaves []leaf
	loop   *reconcile.Loop
}

// leaf is a certificate that the CA signs.
type leaf struct {
	secret   types.NamespacedName
	template *x509.Certificate
}

// New returns an issuer, which Run runs.
func New(config Config, client kubernetes.Interface) (*Issuer, error) {
	member := certificates.Server("borough-etcd", append([]string{"localhost", "127.0.0.1"}, config.Hosts...))
	// Members are clients of one another.
	member.ExtKeyUsage = append(member.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	i := &Issuer{config: config, client: client, leaves: []leaf{
		{config.Member, member},
		{config.Client, certificates.Client(pkix.Name{CommonName: "borough-apiserver"})},
	}}
	i.loop = reconcile.NewLoop("Failed to update the certificates of etcd, will retry until it succeeds", i.sync)
	for _, secret := range []types.NamespacedName{config.CA, config.Member, config.Client} {
		if err := i.loop.WatchSecret(client, secret); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// Run issues and renews certificates until the context ends.
func (i *Issuer) Run(ctx context.Context) { i.loop.Run(ctx) }

// sync brings the Secrets up to date: first the CA, then what it signs. It returns when
// to call it again, or a conflict if another issuer has written a Secret.
func (i *Issuer) sync(ctx context.Context) (next time.Time, err error) {
	now := time.Now()
	secrets, errs := make([]*corev1.Secret, len(i.leaves)), make([]error, len(i.leaves))
	for n, leaf := range i.leaves {
		secrets[n], errs[n] = i.read(ctx, leaf.secret)
	}
	caSecret, err := i.read(ctx, i.config.CA)
	if unread := errors.Join(append(errs, err)...); err != nil || unread != nil && len(caSecret.Data) == 0 {
		return time.Time{}, unread // there may be certificates of a CA that is missing
	}
	ca, err := i.ensureCA(ctx, caSecret, secrets, now)
	if err != nil {
		return time.Time{}, err
	}
	next = certificates.AtShare(ca.Cert, renewCAShare)
	for n, leaf := range i.leaves {
		if errs[n] != nil {
			continue
		}
		var renew time.Time
		renew, errs[n] = i.ensure(ctx, secrets[n], leaf, ca, now)
		if renew.Before(next) {
			next = renew
		}
	}
	return next, errors.Join(errs...)
}

// ensureCA returns the CA. It creates it if there are no certificates at all, and
// renews it in time.
func (i *Issuer) ensureCA(ctx context.Context, secret *corev1.Secret, others []*corev1.Secret, now time.Time) (certificates.Pair, error) {
	var ca certificates.Pair
	var err error
	if len(secret.Data) == 0 {
		for _, other := range others {
			if len(other.Data) > 0 {
				return ca, fmt.Errorf("the Secret %s is empty, but %s/%s has a certificate: restore the CA, or empty both to have all certificates replaced", i.config.CA, other.Namespace, other.Name)
			}
		}
		ca, err = certificates.NewCA(fmt.Sprintf("borough-etcd-ca@%d", now.Unix()), now, now.Add(caLifetime))
	} else {
		if ca, err = parseCA(secret, now); err != nil {
			return ca, fmt.Errorf("the Secret %s has no CA that can be used: %w", i.config.CA, err)
		}
		if now.Before(certificates.AtShare(ca.Cert, renewCAShare)) {
			return ca, nil
		}
		ca, err = ca.RenewCA(now, now.Add(caLifetime))
	}
	if err != nil {
		return ca, err
	}
	certPEM, keyPEM, err := ca.EncodePEM()
	if err != nil {
		return ca, err
	}
	return ca, i.write(ctx, secret, map[string][]byte{corev1.TLSCertKey: certPEM, corev1.TLSPrivateKeyKey: keyPEM})
}

func parseCA(secret *corev1.Secret, now time.Time) (certificates.Pair, error) {
	ca, err := certificates.ParsePEM(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	switch {
	case err != nil:
		return ca, err
	case !ca.Cert.IsCA:
		return ca, errors.New("its certificate is not that of a CA")
	case now.Before(ca.Cert.NotBefore):
		return ca, fmt.Errorf("its certificate is not valid before %s, and the time of this machine is %s", ca.Cert.NotBefore.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return ca, nil
}

// ensure issues the certificate if the Secret has none that can be used, and returns
// when to renew it.
func (i *Issuer) ensure(ctx context.Context, secret *corev1.Secret, leaf leaf, ca certificates.Pair, now time.Time) (renew time.Time, err error) {
	caPEM, _, err := ca.EncodePEM()
	if err != nil {
		return time.Time{}, err
	}
	stored, reason := i.check(secret, leaf, ca, now)
	if reason == nil {
		data := maps.Clone(secret.Data)
		data[caCertKey] = caPEM
		return certificates.AtShare(stored.Cert, renewShare), i.write(ctx, secret, data)
	}
	// Certificates have a precision of a second.
	issued, err := ca.Issue(leaf.template, now, now.Add(i.config.Lifetime).Truncate(time.Second))
	if err != nil {
		return time.Time{}, err
	}
	certPEM, keyPEM, err := issued.EncodePEM()
	if err != nil {
		return time.Time{}, err
	}
	klog.FromContext(ctx).Info("Issuing a certificate of etcd", "secret", leaf.secret, "reason", reason.Error(), "notAfter", issued.Cert.NotAfter)
	return certificates.AtShare(issued.Cert, renewShare),
		i.write(ctx, secret, map[string][]byte{caCertKey: caPEM, corev1.TLSCertKey: certPEM, corev1.TLSPrivateKeyKey: keyPEM})
}

// check returns the certificate in the Secret, or why another one has to be issued.
func (i *Issuer) check(secret *corev1.Secret, leaf leaf, ca certificates.Pair, now time.Time) (certificates.Pair, error) {
	if len(secret.Data) == 0 {
		return certificates.Pair{}, errors.New("there is none")
	}
	stored, err := certificates.ParsePEM(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return stored, err
	}
	if err := certificates.Covers(stored.Cert, ca.Cert, leaf.template, now); err != nil {
		return stored, err
	}
	if err := certificates.CheckLifetime(stored.Cert, i.config.Lifetime); err != nil {
		return stored, err
	}
	if !now.Before(certificates.AtShare(stored.Cert, renewShare)) {
		return stored, fmt.Errorf("it expires at %s", stored.Cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return stored, nil
}

// secretPurpose says in errors what the Secrets are for.
const secretPurpose = "certificates of etcd"

func (i *Issuer) read(ctx context.Context, name types.NamespacedName) (*corev1.Secret, error) {
	return reconcile.ReadSecret(ctx, i.client, name, secretPurpose)
}

func (i *Issuer) write(ctx context.Context, secret *corev1.Secret, data map[string][]byte) error {
	_, err := reconcile.WriteSecret(ctx, i.client, secret, data, secretPurpose)
	return err
}
