// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	certutil "k8s.io/client-go/util/cert"

	"github.com/borough-io/borough/pkg/certificates"
)

// overdueShare of its lifetime is when the controller should have renewed a certificate. It
// does so after 60 % of it, and renews the CA after half.
const overdueShare = 2.0 / 3

// etcdCertificate is a certificate in a Secret, with the key that it has there.
type etcdCertificate struct {
	secret types.NamespacedName
	key    string
	// caKey is that of the CA that signs it, or empty if it is not known.
	caKey string
}

// checkEtcdCertificates checks the certificates that the servers use as clients of
// etcd, and those of the etcd in the manifests. A Pod that needs one does not start
// without it.
func (x *examination) checkEtcdCertificates(ctx context.Context) Finding {
	certs, err := x.etcdCertificates(ctx)
	if err != nil {
		return skipped("cannot read the StatefulSet %s: %s", etcdName, oneLine(err.Error()))
	}
	fix := "renew the certificates or, if cert-manager should issue them, check its log"
	namespace, name, issued := strings.Cut(x.controller.lastFlag("etcd-ca-secret"), "/")
	if issued {
		certs = append(certs, etcdCertificate{types.NamespacedName{Namespace: namespace, Name: name}, corev1.TLSCertKey, corev1.TLSCertKey})
		fix = fmt.Sprintf("the controller issues them: check kubectl logs deployment/%s --namespace=%s, and the check controller rights; if a Secret does not exist, %s", x.controller.name, x.Namespace, deploy)
	}
	var problems, checked []string
	var unread string
	for _, c := range certs {
		stored, err := x.client.CoreV1().Secrets(c.secret.Namespace).Get(ctx, c.secret.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			problems = append(problems, fmt.Sprintf("the Secret %s does not exist", c.secret.Name))
			continue
		case err != nil:
			unread = fmt.Sprintf("cannot read the Secret %s: %s", c.secret, oneLine(err.Error()))
			continue
		}
		cert, problem := verifyEtcd(stored.Data, c.key, c.caKey, x.now())
		if problem == "" && issued && x.now().After(certificates.AtShare(cert, overdueShare)) {
			problem = fmt.Sprintf("is not renewed, and expires at %s", cert.NotAfter.UTC().Format(time.RFC3339))
		}
		if problem != "" {
			problems = append(problems, fmt.Sprintf("the certificate in the Secret %s %s", c.secret.Name, problem))
			continue
		}
		checked = append(checked, fmt.Sprintf("%s until %s", c.secret.Name, cert.NotAfter.UTC().Format(time.RFC3339)))
	}
	switch {
	case len(problems) > 0:
		return fault(strings.Join(problems, "; "), fix)
	case unread != "":
		return skipped("%s", unread)
	case len(checked) == 0:
		return ok("not checked, because the Deployment of the server names none in a Secret")
	}
	return ok("valid: %s", strings.Join(checked, ", "))
}

// etcdCertificates returns the certificates for etcd that the servers and the members
// mount.
func (x *examination) etcdCertificates(ctx context.Context) (certs []etcdCertificate, err error) {
	add := func(workload *deployment, certFile, caFile string) {
		secret, key, found := workload.mountedSecret(x.Namespace, certFile)
		caSecret, caKey, foundCA := workload.mountedSecret(x.Namespace, caFile)
		if found && (caFile == "" || foundCA && secret == caSecret) {
			certs = append(certs, etcdCertificate{secret, key, caKey})
		}
	}
	ca := x.deployment.lastFlag("etcd-cafile")
	set, err := x.client.AppsV1().StatefulSets(x.Namespace).Get(ctx, etcdName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		ca, set = "", &appsv1.StatefulSet{} // only verifies the members: your own etcd can have another CA for clients
	case err != nil:
		return nil, err
	}
	add(x.deployment, x.deployment.lastFlag("etcd-certfile"), ca)
	if spec := set.Spec.Template.Spec; len(spec.Containers) > 0 {
		members := &deployment{name: set.Name, pod: spec, container: spec.Containers[0]}
		add(members, members.lastFlag("cert-file"), members.lastFlag("trusted-ca-file"))
	}
	return certs, nil
}

// verifyEtcd returns a certificate of etcd, and what is wrong with it, or "".
func verifyEtcd(secret map[string][]byte, key, caKey string, now time.Time) (cert *x509.Certificate, problem string) {
	if len(secret[key]) == 0 {
		return nil, "does not exist yet"
	}
	var cas []*x509.Certificate
	if caKey != "" {
		var err error
		if cas, err = certutil.ParseCertsPEM(secret[caKey]); err != nil {
			return nil, "has a CA that cannot be parsed: " + err.Error()
		}
	}
	cert, problem, untrusted := verify(secret[key], cas, x509.VerifyOptions{CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if untrusted {
		problem = "does not verify with the CA in the same Secret"
	}
	return cert, problem
}
