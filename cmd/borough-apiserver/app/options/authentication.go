// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/await"
	"github.com/borough-io/borough/pkg/delegation"
)

// newAuthenticator returns the authenticator that Authentication.ApplyTo configures,
// except that it waits for the cluster. ApplyTo fails when the cluster does not
// answer, and allows all users together 200 TokenReviews per second.
func (o *Options) newAuthenticator(cluster *rest.Config) (_ *delegation.Authenticator, err error) {
	flags := o.Authentication
	config := delegation.AuthenticatorConfig{
		Cluster:  cluster,
		TokenTTL: flags.CacheTTL,
		Backoff:  *flags.WebhookRetryBackoff,
		Timeout:  flags.TokenRequestTimeout,
		Lookup:   !flags.SkipInClusterLookup,
	}
	if config.ClientCA, err = flags.ClientCert.GetClientCAContentProvider(); err != nil {
		return nil, fmt.Errorf("--client-ca-file: %w", err)
	}
	if flags.RequestHeader.ClientCAFile != "" {
		if config.FrontProxy, err = flags.RequestHeader.ToAuthenticationRequestHeaderConfig(); err != nil {
			return nil, fmt.Errorf("--requestheader-client-ca-file: %w", err)
		}
	}
	return config.New()
}

// applyAuthenticator makes the server use the authenticator. The server is not ready
// before it can authenticate kube-apiserver: its requests would be anonymous.
func (o *Options) applyAuthenticator(generic *genericapiserver.RecommendedConfig, a *delegation.Authenticator) {
	generic.Authentication.Authenticator = a
	generic.Authentication.RequestHeaderConfig = a.FrontProxy
	generic.OpenAPIConfig.SecurityDefinitions = a.Security
	generic.SecureServing.ClientCA = anyCA{}
	if !o.Authentication.TolerateInClusterLookupFailure {
		generic.AddReadyzChecks(healthz.NamedCheck("front-proxy-ca", a.Check))
	}
}

// startWithCluster starts what reads from the cluster when the cluster answers.
// Until then the server is not ready. Informers that started before that would wait
// longer and longer before they list again.
func startWithCluster(generic *genericapiserver.RecommendedConfig, a *delegation.Authenticator) error {
	client, err := kubernetes.NewForConfig(generic.ClientConfig)
	if err != nil {
		return fmt.Errorf("create the client for the cluster: %w", err)
	}
	reached := await.NewCondition("the cluster's kube-apiserver")
	generic.AddReadyzChecks(healthz.NamedCheck("cluster-reached", func(*http.Request) error { return reached.Check() }))
	// The library adds this hook if there is none.
	return generic.AddPostStartHook("generic-apiserver-start-informers", func(hook genericapiserver.PostStartHookContext) error {
		go func() {
			if reached.Await(hook, func(ctx context.Context) error { return delegation.Reached(ctx, client) }) {
				generic.SharedInformerFactory.Start(hook.Done())
				a.Run(hook)
			}
		}()
		return nil
	})
}

// anyCA makes the TLS handshake request certificates without naming the CAs, so that
// clients send the certificate that they have. Authentication verifies it.
//
// If the handshake named the CAs, and kube-apiserver connected before that of the
// front proxy is loaded, it would send no certificate, and all requests on that
// connection would be anonymous.
type anyCA struct{}

var _ dynamiccertificates.CAContentProvider = anyCA{}

func (anyCA) Name() string                              { return "any" }
func (anyCA) CurrentCABundleContent() []byte            { return nil }
func (anyCA) VerifyOptions() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, false }
func (anyCA) AddListener(dynamiccertificates.Listener)  {}
