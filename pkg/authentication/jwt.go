// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package authentication

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

const (
	// tokenTTL is how long the user of a token is cached, as in kube-apiserver.
	tokenTTL = 10 * time.Second
	// drain is for how long requests may still use an issuer that was removed.
	drain = time.Minute
)

// issuer authenticates the tokens of one issuer.
type issuer struct {
	oidc.AuthenticatorTokenWithHealthCheck
	config apiserverapi.JWTAuthenticator
	cancel context.CancelFunc
}

// newIssuer returns an issuer that fetches its keys until the context ends.
func newIssuer(ctx context.Context, config apiserverapi.JWTAuthenticator, egress egressselector.Lookup, serverID string) (*issuer, error) {
	options := oidc.Options{
		JWTAuthenticator:     config,
		Compiler:             compiler(),
		EgressLookup:         egress,
		SupportedSigningAlgs: oidc.AllValidSigningAlgorithms(),
		APIServerID:          serverID,
	}
	if pem := config.Issuer.CertificateAuthority; pem != "" {
		ca, err := dynamiccertificates.NewStaticCAContent(config.Issuer.URL, []byte(pem))
		if err != nil {
			return nil, fmt.Errorf("read the CA of the issuer %s: %w", config.Issuer.URL, err)
		}
		options.CAContentProvider = ca
	}
	ctx, cancel := context.WithCancel(ctx)
	authn, err := oidc.New(ctx, options)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("set up the issuer %s: %w", config.Issuer.URL, err)
	}
	return &issuer{authn, config, cancel}, nil
}

// issuers are those of one configuration.
type issuers struct {
	authenticator.Token
	all []*issuer
	// added are those of all that the previous configuration did not have.
	added []*issuer
}

// newIssuers returns the issuers of a configuration. It takes those that have not
// changed from previous, so that they need not answer again.
func newIssuers(ctx context.Context, config *apiserverapi.AuthenticationConfiguration, previous *issuers, egress egressselector.Lookup, serverID string) (*issuers, error) {
	next := &issuers{}
	var tokens []authenticator.Token
	for _, jwt := range config.JWT {
		issuer := previous.find(jwt)
		if issuer == nil {
			var err error
			if issuer, err = newIssuer(ctx, jwt, egress, serverID); err != nil {
				next.cancelAdded()
				return nil, err
			}
			next.added = append(next.added, issuer)
		}
		next.all, tokens = append(next.all, issuer), append(tokens, issuer)
	}
	// Each configuration has its own cache, so that the users of the previous one are
	// not found any more.
	next.Token = cache.New(union.NewFailOnError(tokens...), true, tokenTTL, 0)
	return next, nil
}

func (i *issuers) find(config apiserverapi.JWTAuthenticator) *issuer {
	if i == nil {
		return nil
	}
	for _, issuer := range i.all {
		if reflect.DeepEqual(issuer.config, config) {
			return issuer
		}
	}
	return nil
}

// await waits until the keys of the added issuers can be fetched.
func (i *issuers) await(ctx context.Context, timeout time.Duration) error {
	var unhealthy error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		var errs []error
		for _, issuer := range i.added {
			errs = append(errs, issuer.HealthCheck())
		}
		unhealthy = errors.Join(errs...)
		return unhealthy == nil, nil
	})
	if unhealthy != nil {
		return oneLine(unhealthy)
	}
	return err
}

func (i *issuers) cancelAdded() {
	for _, issuer := range i.added {
		issuer.cancel()
	}
}

// retire ends the issuers that next does not have, when requests that use them have
// had time to end.
func (i *issuers) retire(next *issuers, serverID string) {
	for _, old := range i.all {
		if next.find(old.config) != nil {
			continue
		}
		url := old.config.Issuer.URL
		changed := slices.ContainsFunc(next.all, func(n *issuer) bool { return n.config.Issuer.URL == url })
		time.AfterFunc(drain, func() {
			old.cancel()
			if !changed {
				oidc.DeleteJWKSFetchMetrics(url, serverID)
			}
		})
	}
}
