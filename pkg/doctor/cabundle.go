// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	certutil "k8s.io/client-go/util/cert"
)

func (x *examination) checkCABundle(ctx context.Context) Finding {
	secret, key, managed, found := x.deployment.certSecret(x.Namespace)
	fix := fixCABundle(x.apiService, managed)
	spec := x.apiService.Spec
	if spec.InsecureSkipTLSVerify {
		return fault("insecureSkipTLSVerify is set: a process that impersonates the Service can read and answer all requests that kube-apiserver forwards",
			"remove insecureSkipTLSVerify; "+fix)
	}
	if len(spec.CABundle) == 0 {
		if condition := x.apiService.available(); condition != nil && condition.Status == metav1.ConditionTrue {
			return ok("it is empty, and kube-apiserver trusts the serving certificate by its system roots")
		}
		return fault("it is empty: kube-apiserver cannot verify the serving certificate", fix)
	}
	cas, err := certutil.ParseCertsPEM(spec.CABundle)
	if err != nil {
		return fault("it does not contain PEM certificates: "+err.Error(), fix)
	}
	// By the clock of kube-apiserver, which verifies the certificates.
	now := x.now()
	if expired(cas, now) {
		return fault(fmt.Sprintf("all its certificates are expired or not yet valid; the last one expires at %s", cas[len(cas)-1].NotAfter.Format(time.RFC3339)), fix)
	}

	if !found {
		return ok("it has %d certificates, not all expired; the serving certificate is not in a Secret that doctor could compare it with", len(cas))
	}
	stored, err := x.client.CoreV1().Secrets(secret.Namespace).Get(ctx, secret.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && managed:
		return fault(fmt.Sprintf("the Secret %s, in which the server keeps its certificate, does not exist", secret),
			deploy+", which creates it empty; the server fills it")
	case apierrors.IsNotFound(err):
		return fault(fmt.Sprintf("the Secret %s of the serving certificate does not exist", secret),
			"create it or, if cert-manager should create it, check the log of cert-manager")
	case err != nil:
		return ok("it has %d certificates, not all expired; it cannot be compared with the serving certificate: %s", len(cas), oneLine(err.Error()))
	}
	service := x.apiService.Spec.Service
	name := service.Name + "." + service.Namespace + ".svc"
	if _, problem, untrusted := verify(stored.Data[key], cas, x509.VerifyOptions{DNSName: name, CurrentTime: now}); problem != "" {
		if untrusted {
			problem = "is not signed by a CA in caBundle"
		}
		problem = fmt.Sprintf("the serving certificate in the Secret %s %s", secret, problem)
		if untrusted || managed {
			return fault(problem, fix)
		}
		return fault(problem, fmt.Sprintf("renew the serving certificate for %s", name))
	}
	return ok("it verifies the serving certificate in the Secret %s", secret)
}

// checkCABundlePolicy sends a change of the APIService as the service account, which
// must be denied: who can change more than the caBundle can redirect the requests of
// all users. kube-apiserver does not store the change.
func (x *examination) checkCABundlePolicy(ctx context.Context) Finding {
	if _, _, managed, _ := x.deployment.certSecret(x.Namespace); !managed {
		return ok("the server does not write to the APIService")
	}
	change := fmt.Sprintf(`{"spec": {"versionPriority": %d}}`, x.apiService.Spec.VersionPriority%1000+1)
	a, skip := x.sendAs(ctx, x.ServiceAccount, http.MethodPatch, apiServicePath, url.Values{"dryRun": {"All"}}, string(types.MergePatchType), change)
	if skip != nil {
		return *skip
	}
	user := serviceaccount.MakeUsername(x.Namespace, x.ServiceAccount)
	switch a.status {
	case http.StatusOK:
		return fault(fmt.Sprintf("%s can change all fields of the APIService: a user who has its token can redirect the requests of all users", user),
			"the ValidatingAdmissionPolicy borough-apiserver-ca-bundle or its binding is missing: "+deploy)
	case http.StatusUnprocessableEntity, http.StatusForbidden:
		return ok("%s cannot change other fields of the APIService", user)
	}
	return skipped("cannot send a request as %s: %s", user, a)
}

// fixCABundle returns the fix for a wrong caBundle, depending on what sets it.
func fixCABundle(service *apiService, managed bool) string {
	switch {
	case managed:
		return "the server sets caBundle itself: check that the server runs, and its log; see the check rights"
	case service.Metadata.Annotations["cert-manager.io/inject-ca-from"] != "":
		return "cert-manager sets caBundle: check that its cainjector runs, and its log"
	}
	return "set caBundle to the certificate of the CA that signed the serving certificate: " +
		"kubectl patch apiservice " + apiServiceName + ` --type=merge --patch="{\"spec\":{\"caBundle\":\"$(base64 <ca.crt | tr -d '\n')\"}}"`
}

// expired reports whether none of the certificates is valid now.
func expired(certs []*x509.Certificate, now time.Time) bool {
	for _, cert := range certs {
		if !now.Before(cert.NotBefore) && !now.After(cert.NotAfter) {
			return false
		}
	}
	return true
}

// verify returns the certificate, the first of the chain, and the problem with it, or
// "". It reports whether the problem is that none of the trusted CAs has signed it. If
// there are none, it checks only whether the certificate is valid at that time.
func verify(certPEM []byte, trusted []*x509.Certificate, options x509.VerifyOptions) (cert *x509.Certificate, problem string, untrusted bool) {
	chain, err := certutil.ParseCertsPEM(certPEM)
	if err != nil {
		return nil, "cannot be parsed: " + err.Error(), false
	}
	cert = chain[0]
	switch {
	case expired(chain[:1], options.CurrentTime):
		return cert, fmt.Sprintf("is valid only from %s to %s", cert.NotBefore.Format(time.RFC3339), cert.NotAfter.Format(time.RFC3339)), false
	case len(trusted) == 0:
		return cert, "", false
	}
	options.Roots, options.Intermediates = x509.NewCertPool(), x509.NewCertPool()
	for _, ca := range trusted {
		options.Roots.AddCert(ca)
	}
	for _, ca := range chain[1:] {
		options.Intermediates.AddCert(ca)
	}
	_, err = cert.Verify(options)
	var authority x509.UnknownAuthorityError
	switch {
	case err == nil:
		return cert, "", false
	case errors.As(err, &authority):
		return cert, "is not signed by one of the CAs", true
	}
	return cert, "is not valid: " + err.Error(), false
}
