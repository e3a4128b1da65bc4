// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"bytes"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfigs are the files through which people and the controller reach the
// server. They are written at each start, since the server's address may have
// changed; the certificates in them stay.
type Kubeconfigs struct {
	// Server is the URL of the server.
	Server string
	// TrustedCA is PEM to trust beside the PKI's own CA, for a server that
	// serves with a certificate of somebody else's. May be empty.
	TrustedCA []byte
}

// Write writes a kubeconfig for the admin and one for the controller, readable
// by their owner alone.
func (k Kubeconfigs) Write(pki *PKI, adminFile, controllerFile string) error {
	for _, file := range []struct {
		path, user string
		pair       pair
	}{
		{adminFile, AdminUser, pki.admin},
		{controllerFile, ControllerUser, pki.controller},
	} {
		content, err := clientcmd.Write(k.config(file.user, file.pair, pki.ca.certPEM))
		if err != nil {
			return fmt.Errorf("encode the kubeconfig of %s: %w", file.user, err)
		}
		if err := writeFile(file.path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (k Kubeconfigs) config(user string, pair pair, ca []byte) clientcmdapi.Config {
	const cluster = "borough"
	return clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			cluster: {Server: k.Server, CertificateAuthorityData: bytes.Join([][]byte{ca, k.TrustedCA}, nil)},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			user: {ClientCertificateData: pair.certPEM, ClientKeyData: pair.keyPEM},
		},
		Contexts: map[string]*clientcmdapi.Context{
			cluster: {Cluster: cluster, AuthInfo: user},
		},
		CurrentContext: cluster,
	}
}
