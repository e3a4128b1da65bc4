// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
)

// etcdFiles are the files of a workload with its certificate for etcd and the CA that
// signs it, which is empty if it is not known.
type etcdFiles struct {
	workload *deployment
	cert, ca string
}

// checkEtcdCertificates checks the certificates that the servers use as clients of
// etcd, and those of the etcd in the manifests. A Pod that needs one does not start
// without it.
func (x *examination) checkEtcdCertificates(ctx context.Context) Finding {
	files := []etcdFiles{{x.deployment, x.deployment.lastFlag("etcd-certfile"), x.deployment.lastFlag("etcd-cafile")}}
	set, err := x.client.AppsV1().StatefulSets(x.Namespace).Get(ctx, etcdName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		files[0].ca = "" // only verifies the members: your own etcd can have another CA for clients
	case err != nil:
		return skipped("cannot read the StatefulSet %s: %s", etcdName, oneLine(err.Error()))
	case len(set.Spec.Template.Spec.Containers) > 0:
		spec := set.Spec.Template.Spec
		members := &deployment{name: set.Name, pod: spec, container: spec.Containers[0]}
		files = append(files, etcdFiles{members, members.lastFlag("cert-file"), members.lastFlag("trusted-ca-file")})
	}
	var problems, checked []string
	for _, file := range files {
		secret, key, found := file.workload.mountedSecret(x.Namespace, file.cert)
		caSecret, caKey, foundCA := file.workload.mountedSecret(x.Namespace, file.ca)
		if !found || file.ca != "" && (!foundCA || secret != caSecret) {
			continue
		}
		stored, err := x.client.CoreV1().Secrets(secret.Namespace).Get(ctx, secret.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			problems = append(problems, fmt.Sprintf("the Secret %s does not exist", secret.Name))
			continue
		case err != nil:
			return skipped("cannot read the Secret %s: %s", secret, oneLine(err.Error()))
		}
		notAfter, problem := verifyEtcd(stored.Data, key, caKey, x.now())
		if problem != "" {
			problems = append(problems, fmt.Sprintf("the certificate in the Secret %s %s", secret.Name, problem))
			continue
		}
		checked = append(checked, fmt.Sprintf("%s until %s", secret.Name, notAfter.UTC().Format(time.RFC3339)))
	}
	switch {
	case len(problems) > 0 && x.controller.lastFlag("etcd-ca-secret") != "":
		return fault(strings.Join(problems, "; "), "the controller issues them: check kubectl logs deployment/"+x.controller.name+
			" --namespace="+x.Namespace+", and the check controller rights; if a Secret does not exist, "+deploy)
	case len(problems) > 0:
		return fault(strings.Join(problems, "; "), "renew the certificates or, if cert-manager should issue them, check its log")
	case len(checked) == 0:
		return ok("not checked, because the Deployment of the server names none in a Secret")
	}
	return ok("valid: %s", strings.Join(checked, ", "))
}

// verifyEtcd returns what is wrong with a certificate of etcd, or when it expires.
func verifyEtcd(secret map[string][]byte, key, caKey string, now time.Time) (notAfter time.Time, problem string) {
	if len(secret[key]) == 0 {
		return time.Time{}, "does not exist yet"
	}
	var cas []*x509.Certificate
	if caKey != "" {
		var err error
		if cas, err = certutil.ParseCertsPEM(secret[caKey]); err != nil {
			return time.Time{}, "has a CA that cannot be parsed: " + err.Error()
		}
	}
	cert, problem, untrusted := verify(secret[key], cas, x509.VerifyOptions{CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	switch {
	case untrusted:
		return time.Time{}, "does not verify with the CA in the same Secret"
	case problem != "":
		return time.Time{}, problem
	}
	return cert.NotAfter, ""
}
