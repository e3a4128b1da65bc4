// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/borough-io/borough/pkg/authentication/x509cache"
	"github.com/borough-io/borough/pkg/authfailure"
	"github.com/borough-io/borough/pkg/await"
)

// The ConfigMap in which kube-apiserver publishes how to authenticate it and its
// users, and its keys.
const (
	ConfigMapNamespace = metav1.NamespaceSystem
	ConfigMapName      = "extension-apiserver-authentication"
	FrontProxyCAKey    = "requestheader-client-ca-file"
	UsernameHeadersKey = "requestheader-username-headers"
	GroupHeadersKey    = "requestheader-group-headers"
	clientCAKey        = "client-ca-file"
)

// lookupTimeout bounds an attempt to read the ConfigMap.
const lookupTimeout = 5 * time.Second

// AuthenticatorConfig configures the authenticator of a server behind a cluster.
type AuthenticatorConfig struct {
	// Cluster is how kube-apiserver is reached. Its QPS and Burst have no effect on
	// reviews.
	Cluster *rest.Config
	// TokenTTL is how long the answers to TokenReviews are cached.
	TokenTTL time.Duration
	// Backoff is between attempts to create a TokenReview, and Timeout bounds them
	// all.
	Backoff wait.Backoff
	Timeout time.Duration
	// ClientCA verifies the certificates of users. FrontProxy verifies that of
	// kube-apiserver, and says in which headers it names its users. With Lookup, the
	// one that is nil is looked up in the cluster.
	ClientCA   dynamiccertificates.CAContentProvider
	FrontProxy *authenticatorfactory.RequestHeaderConfig
	Lookup     bool
}

// Authenticator authenticates kube-apiserver for its users, users with certificates
// that the cluster trusts, and users with tokens, by TokenReviews.
type Authenticator struct {
	authenticator.Request
	// FrontProxy is how kube-apiserver is authenticated, nil if it is not.
	FrontProxy *authenticatorfactory.RequestHeaderConfig
	// Security describes the authenticator in OpenAPI.
	Security *spec.SecurityDefinitions

	client    kubernetes.Interface
	looksUp   []dynamiccertificates.ControllerRunner // read the ConfigMap
	reloads   []dynamiccertificates.ControllerRunner // read files
	required  []string                               // keys of the ConfigMap
	available *await.Condition
}

// New returns an authenticator. It needs no answer of the cluster; Run waits for one.
func (c AuthenticatorConfig) New() (*Authenticator, error) {
	client, err := kubernetes.NewForConfig(c.Cluster)
	if err != nil {
		return nil, fmt.Errorf("create the client for the ConfigMap: %w", err)
	}
	reviews, err := c.reviews()
	if err != nil {
		return nil, fmt.Errorf("create the client for TokenReviews: %w", err)
	}
	a := &Authenticator{client: client, available: await.NewCondition("ConfigMap " + ConfigMapNamespace + "/" + ConfigMapName)}
	clientCA, err := a.clientCA(c)
	if err != nil {
		return nil, err
	}
	if a.FrontProxy, err = a.frontProxy(c); err != nil {
		return nil, err
	}
	tokens, security, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient:  reviews,
		TokenAccessReviewTimeout: c.Timeout,
		WebhookRetryBackoff:      &c.Backoff,
		CacheTTL:                 c.TokenTTL,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("create the authenticator: %w", err)
	}
	var each []authenticator.Request
	if a.FrontProxy != nil {
		each = append(each, newFrontProxy(a.FrontProxy))
	}
	if clientCA != nil { // the factory would verify a certificate for each request
		each = append(each, x509cache.New(x509.NewDynamic(clientCA.VerifyOptions, x509.CommonNameUserConversion), clientCA.CurrentCABundleContent))
	}
	users := group.NewAuthenticatedGroupAdder(union.New(append(each, tokens)...))
	a.Request, a.Security = noteUnreviewed(union.NewFailOnError(users, anonymous.NewAuthenticator(nil))), security
	return a, nil
}

// reviews returns the client for TokenReviews.
func (c AuthenticatorConfig) reviews() (authenticationclient.AuthenticationV1Interface, error) {
	cluster := rest.CopyConfig(c.Cluster)
	cluster.QPS = -1 // With a limit, users with invalid tokens would delay others.
	attempts := newAttempts(cluster, c.Timeout)
	cluster.Wrap(func(delegate http.RoundTripper) http.RoundTripper { return newTokenTransport(attempts(delegate)) })
	return authenticationclient.NewForConfig(cluster)
}

// clientCA returns what verifies the certificates of users, or nil.
func (a *Authenticator) clientCA(c AuthenticatorConfig) (dynamiccertificates.CAContentProvider, error) {
	if c.ClientCA != nil {
		a.reload(c.ClientCA)
		return c.ClientCA, nil
	}
	if !c.Lookup {
		return nil, nil
	}
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", ConfigMapNamespace, ConfigMapName, clientCAKey, a.client)
	if err != nil {
		return nil, fmt.Errorf("create the controller of the client CA: %w", err)
	}
	a.looksUp = append(a.looksUp, ca)
	return ca, nil
}

// frontProxy returns how kube-apiserver is authenticated, or nil.
func (a *Authenticator) frontProxy(c AuthenticatorConfig) (*authenticatorfactory.RequestHeaderConfig, error) {
	if c.FrontProxy != nil {
		a.reload(c.FrontProxy.CAContentProvider)
		return c.FrontProxy, nil
	}
	if !c.Lookup {
		return nil, nil
	}
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("front-proxy-ca", ConfigMapNamespace, ConfigMapName, FrontProxyCAKey, a.client)
	if err != nil {
		return nil, fmt.Errorf("create the controller of the CA of the front proxy: %w", err)
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(ConfigMapName, ConfigMapNamespace, a.client,
		UsernameHeadersKey, "requestheader-uid-headers", GroupHeadersKey,
		"requestheader-extra-headers-prefix", "requestheader-allowed-names")
	a.looksUp = append(a.looksUp, ca, headers)
	a.required = append(a.required, FrontProxyCAKey)
	return &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider:   ca,
		UsernameHeaders:     headerrequest.StringSliceProviderFunc(headers.UsernameHeaders),
		UIDHeaders:          headerrequest.StringSliceProviderFunc(headers.UIDHeaders),
		GroupHeaders:        headerrequest.StringSliceProviderFunc(headers.GroupHeaders),
		ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(headers.ExtraHeaderPrefixes),
		AllowedClientNames:  headerrequest.StringSliceProviderFunc(headers.AllowedClientNames),
	}, nil
}

func (a *Authenticator) reload(ca dynamiccertificates.CAContentProvider) {
	if controller, ok := ca.(dynamiccertificates.ControllerRunner); ok {
		a.reloads = append(a.reloads, controller)
	}
}

// Run keeps what the authenticator trusts up to date until the context ends. It waits
// for what is looked up in the cluster: informers that cannot list wait longer and
// longer before they try again.
func (a *Authenticator) Run(ctx context.Context) {
	for _, controller := range a.reloads {
		go controller.Run(ctx, 1)
	}
	if len(a.looksUp) > 0 && a.available.Await(ctx, a.lookup) {
		for _, controller := range a.looksUp {
			go controller.Run(ctx, 1)
		}
	}
	<-ctx.Done()
}

// lookup returns an error if the ConfigMap cannot be read, or lacks what is required.
func (a *Authenticator) lookup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	config, err := a.client.CoreV1().ConfigMaps(ConfigMapNamespace).Get(ctx, ConfigMapName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, key := range a.required {
		if config.Data[key] == "" {
			return fmt.Errorf("it has no %s: kube-apiserver runs without --%s", key, key)
		}
	}
	return nil
}

// Check returns an error until kube-apiserver can be authenticated. Its requests, for
// its users, would be anonymous.
func (a *Authenticator) Check(*http.Request) error {
	if a.FrontProxy == nil || len(a.FrontProxy.CAContentProvider.CurrentCABundleContent()) > 0 && len(a.FrontProxy.UsernameHeaders.Value()) > 0 {
		return nil
	}
	if err := a.available.Check(); err != nil {
		return err
	}
	return errors.New("the CA that authenticates kube-apiserver is not loaded yet")
}

// noteUnreviewed notes for package authfailure when an authenticator fails because the
// cluster does not review a token. With a 401 the client would discard the token.
func noteUnreviewed(delegate authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := delegate.AuthenticateRequest(req)
		switch {
		case err == nil:
		case errors.Is(err, errTooManyTokenReviews):
			authfailure.Note(req.Context(), newTooManyRequests(errTooManyTokenReviews))
		case unanswered(err):
			authfailure.Note(req.Context(), newUnavailable("TokenReview"))
		case refused(err):
			// The client is not known, so it does not get the reason, which is logged.
			authfailure.Note(req.Context(), apierrors.NewInternalError(errors.New("the cluster's kube-apiserver refuses a TokenReview of this server")))
		}
		return response, ok, err
	})
}

// Reached returns an error if kube-apiserver does not answer the client at all.
func Reached(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	err := client.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError {
		return nil // the client may lack a right, which others may not need
	}
	return err
}
