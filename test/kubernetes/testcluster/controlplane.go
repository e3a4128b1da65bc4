// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"crypto/x509/pkix"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/harness"
)

const (
	// serviceIPRange is the range of the Services' addresses, and
	// apiServerServiceIP the address of the Service kubernetes.
	serviceIPRange     = "10.0.0.0/16"
	apiServerServiceIP = "10.0.0.1"
	// frontProxyUser is the user as which kube-apiserver authenticates to an
	// aggregated API server.
	frontProxyUser = "front-proxy-client"
)

// makePKI makes what kubeadm makes: a CA for users and servers, another for the
// front proxy, and the key pair for service account tokens.
func (c *Cluster) makePKI() error {
	c.ca = c.pki.newCA("ca")
	c.pki.issue(c.ca, "apiserver", pkix.Name{CommonName: "kube-apiserver"}, "localhost", "127.0.0.1", apiServerServiceIP,
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	c.pki.issue(c.ca, "controller-manager", pkix.Name{CommonName: "system:kube-controller-manager"}, "localhost", "127.0.0.1")

	frontProxyCA := c.pki.newCA("front-proxy-ca")
	c.pki.issue(frontProxyCA, "front-proxy-client", pkix.Name{CommonName: frontProxyUser})
	c.pki.newKeyPair("service-accounts")
	return c.pki.err
}

// StartAPIServer starts or restarts kube-apiserver and returns once it is
// ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	egress := filepath.Join(c.Dir, "egress.yaml")
	if err := c.Network.writeEgressConfig(egress); err != nil {
		return err
	}
	args := append(c.Etcd.ClientFlags(),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(c.port),
		"--tls-cert-file="+c.pki.file("apiserver.crt"),
		"--tls-private-key-file="+c.pki.file("apiserver.key"),
		"--client-ca-file="+c.pki.file("ca.crt"),
		"--authorization-mode=Node,RBAC",

		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+c.pki.file("service-accounts.pub"),
		"--service-account-signing-key-file="+c.pki.file("service-accounts.key"),
		"--service-cluster-ip-range="+serviceIPRange,
		// kube-apiserver can't publish a loopback address as its endpoint.
		"--endpoint-reconciler-type=none",

		"--requestheader-client-ca-file="+c.pki.file("front-proxy-ca.crt"),
		"--requestheader-allowed-names="+frontProxyUser,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+c.pki.file("front-proxy-client.crt"),
		"--proxy-client-key-file="+c.pki.file("front-proxy-client.key"),

		// Service IPs are unreachable, so the aggregator connects to endpoints.
		"--enable-aggregator-routing",
		"--egress-selector-config-file="+egress,
	)
	path, err := Binary("kube-apiserver")
	if err != nil {
		return err
	}
	c.APIServer, err = harness.StartReady(ctx, c.admin, "/readyz", path, append(args, c.options.APIServerFlags...)...)
	return err
}

// StartControllerManager starts or restarts kube-controller-manager and returns
// once it is healthy.
func (c *Cluster) StartControllerManager(ctx context.Context) error {
	config, err := c.UserConfig("system:kube-controller-manager")
	if err != nil {
		return err
	}
	if c.options.AdminControllerManager {
		config = c.AdminConfig()
	}
	kubeconfig, err := c.WriteKubeconfig("controller-manager", config)
	if err != nil {
		return err
	}
	controllers := slices.Concat(DefaultControllers, c.options.Controllers)
	if c.options.OnlyControllers != nil {
		controllers = c.options.OnlyControllers
	}
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.kcmPort),
		"--tls-cert-file=" + c.pki.file("controller-manager.crt"),
		"--tls-private-key-file=" + c.pki.file("controller-manager.key"),
		"--client-ca-file=" + c.pki.file("ca.crt"),
		"--root-ca-file=" + c.pki.file("ca.crt"),
		"--service-account-private-key-file=" + c.pki.file("service-accounts.key"),
		// Controllers use their service accounts, as in most real clusters.
		"--use-service-account-credentials=" + strconv.FormatBool(!c.options.AdminControllerManager),
		"--controllers=" + strings.Join(controllers, ","),
		// There is only one, and after a restart it does not wait for a Lease.
		"--leader-elect=false",
	}
	path, err := Binary("kube-controller-manager")
	if err != nil {
		return err
	}
	anyone := &rest.Config{Host: localURL(c.kcmPort), TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.CertPEM}}
	c.ControllerManager, err = harness.StartReady(ctx, anyone, "/healthz", path, append(args, c.options.ControllerManagerFlags...)...)
	return err
}
