// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"

	"github.com/borough-io/borough/pkg/authorization/bootstrap"
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
	// TLSServerName is the name by which clients verify that certificate, if it is not
	// valid for the address in Server. It may be empty.
	TLSServerName string
}

// Write writes a kubeconfig for the admin and one for the controller, readable
// only by their owner.
func (k Kubeconfigs) Write(pki *PKI, adminFile, controllerFile string) error {
	trusted, err := certutil.EncodeCertificates(pki.ca.Cert)
	if err != nil {
		return fmt.Errorf("encode the CA: %w", err)
	}
	cluster := &clientcmdapi.Cluster{Server: k.Server, TLSServerName: k.TLSServerName, CertificateAuthorityData: append(trusted, k.TrustedCA...)}
	for _, file := range []struct {
		path, user string
		pair       certificates.Pair
	}{
		{adminFile, adminUser, pki.admin},
		{controllerFile, bootstrap.ControllerUser, pki.controller},
	} {
		content, err := Kubeconfig(cluster, file.user, file.pair)
		if err != nil {
			return err
		}
		if err := certificates.WriteFile(file.path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Kubeconfig returns the content of a kubeconfig with which a user reaches a server.
// The pair is the user's certificate and key.
func Kubeconfig(cluster *clientcmdapi.Cluster, user string, pair certificates.Pair) ([]byte, error) {
	certPEM, keyPEM, err := pair.EncodePEM()
	if err != nil {
		return nil, fmt.Errorf("create the kubeconfig of %s: %w", user, err)
	}
	const name = "borough"
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {ClientCertificateData: certPEM, ClientKeyData: keyPEM}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: user}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig of %s: %w", user, err)
	}
	return content, nil
}

// ReadCluster returns how a kubeconfig's current context reaches its server.
func ReadCluster(kubeconfig string) (*clientcmdapi.Cluster, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", kubeconfig, err)
	}
	if context := config.Contexts[config.CurrentContext]; context != nil && config.Clusters[context.Cluster] != nil {
		cluster := config.Clusters[context.Cluster].DeepCopy()
		cluster.LocationOfOrigin = ""
		return cluster, nil
	}
	return nil, fmt.Errorf("read %s: its current context has no cluster", kubeconfig)
}
