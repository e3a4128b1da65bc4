// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Clients with these configurations have no rate limit.

// AdminConfig returns the configuration of a client with all rights.
func (c *Cluster) AdminConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// UserConfig returns the configuration of a client that authenticates as the
// user with a client certificate.
func (c *Cluster) UserConfig(user string, groups ...string) (*rest.Config, error) {
	cert, key, err := c.ca.Issue(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return nil, err
	}
	config := c.anonymousConfig()
	config.CertData, config.KeyData = cert, key
	return config, nil
}

// ServiceAccountConfig returns the configuration of a client that authenticates
// as the service account with a token.
func (c *Cluster) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	token, err := c.ServiceAccountToken(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	config := c.anonymousConfig()
	config.BearerToken = token
	return config, nil
}

// ServiceAccountToken returns a new token of an existing service account, valid
// for a day.
func (c *Cluster) ServiceAccountToken(ctx context.Context, namespace, name string) (string, error) {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return "", fmt.Errorf("make a client: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(validity.Seconds())),
	}}
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("get a token of the service account %s/%s: %w", namespace, name, err)
	}
	return answer.Status.Token, nil
}

func (c *Cluster) anonymousConfig() *rest.Config {
	return &rest.Config{Host: localURL(c.port), QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.CertPEM}}
}

// WriteKubeconfig writes a configuration to the kubeconfig Dir/name.kubeconfig
// and returns its path.
func (c *Cluster) WriteKubeconfig(name string, config *rest.Config) (string, error) {
	path := filepath.Join(c.Dir, name+".kubeconfig")
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["host"] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthorityData: config.CAData,
	}
	kubeconfig.AuthInfos["user"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
		Impersonate:           config.Impersonate.UserName,
		ImpersonateUID:        config.Impersonate.UID,
		ImpersonateGroups:     config.Impersonate.Groups,
		ImpersonateUserExtra:  config.Impersonate.Extra,
	}
	kubeconfig.Contexts["user@host"] = &clientcmdapi.Context{Cluster: "host", AuthInfo: "user"}
	kubeconfig.CurrentContext = "user@host"
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	return path, nil
}
