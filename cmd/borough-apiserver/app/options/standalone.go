// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/borough-io/borough/pkg/admission/hostplugins"
	"github.com/borough-io/borough/pkg/standalone"
)

// standaloneWatchGrace bounds how long a stop waits for watches to be closed in
// good order.
const standaloneWatchGrace = 2 * time.Second

func (o *Options) validateStandalone() []error {
	var errs []error
	for _, flag := range []struct{ name, value string }{
		{"kubeconfig", o.CoreAPI.CoreAPIKubeconfigPath},
		{"authentication-kubeconfig", o.Authentication.RemoteKubeConfigFile},
		{"authorization-kubeconfig", o.Authorization.RemoteKubeConfigFile},
		{"requestheader-client-ca-file", o.Authentication.RequestHeader.ClientCAFile},
		{"serving-cert-secret", o.Hosted.CertSecret},
	} {
		if flag.value != "" {
			errs = append(errs, fmt.Errorf("--%s is for a host cluster and can't go with --standalone", flag.name))
		}
	}
	if o.Hosted.Namespaces.Couple {
		errs = append(errs, fmt.Errorf("--couple-host-namespaces is for a host cluster and can't go with --standalone"))
	}
	for _, plugin := range o.Admission.EnablePlugins {
		if slices.Contains(hostplugins.Names(), plugin) {
			errs = append(errs, fmt.Errorf("--enable-admission-plugins: %s is configured by objects of a host cluster and can't go with --standalone", plugin))
		}
	}
	if o.Features.EnablePriorityAndFairness {
		errs = append(errs, fmt.Errorf("--enable-priority-and-fairness is configured by objects of a host cluster and can't go with --standalone"))
	}
	return errs
}

// applyStandalone serves with certificates of the server's own, knows users by
// client certificates, and allows what its own policy says.
func (o *Options) applyStandalone(generic *genericapiserver.RecommendedConfig) error {
	pki, err := standalone.EnsurePKI(o.inDataDir("pki"), o.servingHosts())
	if err != nil {
		return err
	}
	kubeconfigs := standalone.Kubeconfigs{Server: "https://" + net.JoinHostPort(o.localHost(), strconv.Itoa(o.SecureServing.BindPort))}
	if cert := &o.SecureServing.ServerCert.CertKey; cert.CertFile == "" && cert.KeyFile == "" {
		cert.CertFile, cert.KeyFile = pki.ServingCertFile(), pki.ServingKeyFile()
	} else if kubeconfigs.TrustedCA, err = os.ReadFile(cert.CertFile); err != nil {
		return fmt.Errorf("read --tls-cert-file: %w", err)
	}
	if err := o.SecureServing.ApplyToConfig(&generic.Config); err != nil {
		return err
	}

	clientCA, err := dynamiccertificates.NewDynamicCAContentFromFile("standalone-ca", pki.CAFile())
	if err != nil {
		return fmt.Errorf("read the CA: %w", err)
	}
	trusted := dynamiccertificates.CAContentProvider(clientCA)
	if file := o.Authentication.ClientCert.ClientCA; file != "" {
		more, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca-file", file)
		if err != nil {
			return fmt.Errorf("read --client-ca-file: %w", err)
		}
		trusted = dynamiccertificates.NewUnionCAContentProvider(clientCA, more)
	}
	if err := generic.Authentication.ApplyClientCert(trusted, generic.SecureServing); err != nil {
		return err
	}
	openPaths := o.Authorization.AlwaysAllowPaths
	if generic.Authentication.Authenticator, err = standalone.NewAuthenticator(trusted, openPaths); err != nil {
		return err
	}
	if generic.Authorization.Authorizer, err = standalone.NewAuthorizer(openPaths); err != nil {
		return err
	}

	// Only now is the port ours, and with it the right to say where we are.
	return kubeconfigs.Write(pki, o.inDataDir("admin.kubeconfig"), o.inDataDir("controller.kubeconfig"))
}

// localHost is the address that kubeconfigs on this machine use.
func (o *Options) localHost() string {
	if o.SecureServing.BindAddress.IsUnspecified() {
		return "127.0.0.1"
	}
	return o.SecureServing.BindAddress.String()
}

// servingHosts are the names and addresses that the serving certificate covers.
func (o *Options) servingHosts() []string {
	hosts := []string{"localhost", "127.0.0.1", "::1", o.localHost()}
	if o.Server.ExternalHost != "" {
		hosts = append(hosts, o.Server.ExternalHost)
	}
	if o.SecureServing.BindAddress.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			hosts = append(hosts, name)
		}
		addresses, _ := net.InterfaceAddrs()
		for _, address := range addresses {
			if ip, ok := address.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() {
				hosts = append(hosts, ip.IP.String())
			}
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
