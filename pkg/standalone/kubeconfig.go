// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"crypto/x509"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"

	"github.com/borough-io/borough/pkg/certificates"
)

// Kubeconfigs are the files with which users and the controller reach the server.
// They are written on each start, because the address of the server may have
// changed; the certificates in them are kept.
type Kubeconfigs struct {
	// Server is the URL of the server.
	Server string
	// TrustedCA is PEM to trust in addition to the CA of the PKI, for a server
	// with a serving certificate from another CA. It may be empty.
	TrustedCA []byte
}

// Write writes a kubeconfig for the admin and one for the controller, readable
// only by their owner.
func (k Kubeconfigs) Write(pki *PKI, adminFile, controllerFile string) error {
	for _, file := range []struct {
		path, user string
		pair       certificates.Pair
	}{
		{adminFile, AdminUser, pki.admin},
		{controllerFile, ControllerUser, pki.controller},
	} {
		config, err := k.config(file.user, file.pair, pki.ca.Cert)
		if err != nil {
			return fmt.Errorf("create the kubeconfig of %s: %w", file.user, err)
		}
		content, err := clientcmd.Write(config)
		if err != nil {
			return fmt.Errorf("encode the kubeconfig of %s: %w", file.user, err)
		}
		if err := certificates.WriteFile(file.path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (k Kubeconfigs) config(user string, pair certificates.Pair, ca *x509.Certificate) (clientcmdapi.Config, error) {
	certPEM, keyPEM, err := pair.EncodePEM()
	if err != nil {
		return clientcmdapi.Config{}, err
	}
	trusted, err := certutil.EncodeCertificates(ca)
	if err != nil {
		return clientcmdapi.Config{}, fmt.Errorf("encode the CA: %w", err)
	}
	const cluster = "borough"
	return clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			cluster: {Server: k.Server, CertificateAuthorityData: append(trusted, k.TrustedCA...)},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			user: {ClientCertificateData: certPEM, ClientKeyData: keyPEM},
		},
		Contexts: map[string]*clientcmdapi.Context{
			cluster: {Cluster: cluster, AuthInfo: user},
		},
		CurrentContext: cluster,
	}, nil
}
