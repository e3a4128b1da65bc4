// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/apiserver"
	"github.com/borough-io/borough/pkg/servingcert"
)

// minCertLifetime is the shortest life of a certificate in which there is time
// to learn of the next one.
const minCertLifetime = 30 * time.Second

// HostedOptions are for a server behind the API server of a host cluster.
type HostedOptions struct {
	// Namespaces is the rule for the namespace controller of the host cluster.
	Namespaces apiserver.HostNamespaces
	// CertSecret, NAMESPACE/NAME, is where the server keeps a serving
	// certificate that it makes itself. Empty means that it makes none.
	CertSecret string
	// CertService, NAMESPACE/NAME, is the Service that the certificate is for.
	CertService string
	// CertLifetime is how long a certificate lives.
	CertLifetime time.Duration
}

func newHostedOptions() *HostedOptions {
	return &HostedOptions{
		Namespaces:   apiserver.HostNamespaces{Controllers: apiserver.DefaultHostNamespaceControllers()},
		CertService:  "borough-system/borough-apiserver",
		CertLifetime: 90 * 24 * time.Hour,
	}
}

// AddFlags adds the flags.
func (o *HostedOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Namespaces.Couple, "couple-host-namespaces", o.Namespaces.Couple, ""+
		"Delete a Namespace when the host cluster deletes its own namespace of the same name. "+
		"Otherwise the two have nothing to do with each other.")
	fs.StringSliceVar(&o.Namespaces.Controllers, "host-namespace-controllers", o.Namespaces.Controllers, ""+
		"Users that the namespace controller of the host cluster comes as. When it purges a namespace of the host, "+
		"it finds nothing in a Namespace here of the same name, unless the two are coupled.")
	fs.StringVar(&o.CertSecret, "serving-cert-secret", o.CertSecret, ""+
		"Secret of the host cluster, NAMESPACE/NAME, in which the server keeps a serving certificate that it makes, "+
		"shares with its replicas and renews; the APIService "+apiServiceName+" is told to trust it. "+
		"Can't go with --tls-cert-file.")
	fs.StringVar(&o.CertService, "serving-cert-service", o.CertService, ""+
		"Service, NAMESPACE/NAME, that the certificate in --serving-cert-secret is for.")
	fs.DurationVar(&o.CertLifetime, "serving-cert-lifetime", o.CertLifetime, ""+
		"How long a certificate in --serving-cert-secret lives. The next one is made after 60 % of it.")
}

const apiServiceName = "v1." + v1.GroupName

func (o *Options) validateHosted() []error {
	if o.CoreAPI.CoreAPIKubeconfigPath == "" {
		if _, err := rest.InClusterConfig(); err != nil {
			// The rest would only be noise.
			return []error{fmt.Errorf("there is no host cluster: pass --standalone to run without one, or --kubeconfig=FILE to run behind the API server of one (%w)", err)}
		}
	}
	if o.Hosted.CertSecret == "" {
		return nil
	}
	var errs []error
	if _, err := namespacedName("serving-cert-secret", o.Hosted.CertSecret); err != nil {
		errs = append(errs, err)
	}
	if _, err := namespacedName("serving-cert-service", o.Hosted.CertService); err != nil {
		errs = append(errs, err)
	}
	if o.Hosted.CertLifetime < minCertLifetime {
		errs = append(errs, fmt.Errorf("--serving-cert-lifetime must be at least %s, not %s", minCertLifetime, o.Hosted.CertLifetime))
	}
	if o.SecureServing.ServerCert.CertKey.CertFile != "" {
		errs = append(errs, fmt.Errorf("--serving-cert-secret and --tls-cert-file exclude each other"))
	}
	return errs
}

func namespacedName(flag, value string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(value, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("--%s must be NAMESPACE/NAME, not %q", flag, value)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// applyHosted serves behind the API server of a host cluster, which says who
// the users are and what they may do.
func (o *Options) applyHosted(ctx context.Context, generic *genericapiserver.RecommendedConfig) error {
	if err := o.CoreAPI.ApplyTo(generic); err != nil {
		return err
	}
	if o.Hosted.CertSecret != "" {
		keeper, err := o.keepCert(ctx, generic.ClientConfig)
		if err != nil {
			return err
		}
		o.SecureServing.ServerCert.GeneratedCert = keeper
	} else if err := o.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return fmt.Errorf("make a serving certificate: %w", err)
	}
	if err := o.SecureServing.ApplyToConfig(&generic.Config); err != nil {
		return err
	}
	if err := o.Authentication.ApplyTo(&generic.Authentication, generic.SecureServing, generic.OpenAPIConfig); err != nil {
		return err
	}
	applyFrontProxy(generic)
	return o.Authorization.ApplyTo(&generic.Authorization)
}

// keepCert makes sure that there is a serving certificate. The server runs what
// it returns.
func (o *Options) keepCert(ctx context.Context, host *rest.Config) (*servingcert.Keeper, error) {
	secret, err := namespacedName("serving-cert-secret", o.Hosted.CertSecret)
	if err != nil {
		return nil, err
	}
	service, err := namespacedName("serving-cert-service", o.Hosted.CertService)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(host)
	if err != nil {
		return nil, fmt.Errorf("make the client of the host cluster: %w", err)
	}
	dynamic, err := dynamic.NewForConfig(host)
	if err != nil {
		return nil, fmt.Errorf("make the dynamic client of the host cluster: %w", err)
	}
	name := service.Name + "." + service.Namespace + ".svc"
	keeper, err := servingcert.NewKeeper(servingcert.Config{
		Secret:     secret,
		APIService: apiServiceName,
		Hosts:      []string{name, name + ".cluster.local"},
		Lifetime:   o.Hosted.CertLifetime,
	}, client, dynamic)
	if err != nil {
		return nil, err
	}
	return keeper, keeper.RunOnce(ctx)
}
