// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/borough-io/borough/pkg/authentication"
	"github.com/borough-io/borough/pkg/standalone"
)

// BuiltInAuthenticationOptions are how a standalone server authenticates users besides
// by client certificates. The flags are those of kube-apiserver.
type BuiltInAuthenticationOptions struct {
	// Anonymous says that requests without credentials are authenticated as anonymous.
	Anonymous bool
	// TokenFile is a file with static tokens. It may be empty.
	TokenFile string
	// ConfigFile is a file with an authentication configuration. It may be empty.
	ConfigFile string

	anonymousSet bool
}

// AddFlags adds the flags.
func (o *BuiltInAuthenticationOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Anonymous, "anonymous-auth", o.Anonymous, ""+
		"Authenticate requests without credentials as the user system:anonymous in the group system:unauthenticated. "+
		"If false, they get 401. Cannot be used if the file of --authentication-config has the field anonymous.")
	fs.StringVar(&o.TokenFile, "token-auth-file", o.TokenFile, ""+
		"CSV file with bearer tokens: token, user name, UID and, optionally, groups, as in token,alice,1,\"team-a,team-b\". "+
		"The server reads it when it starts.")
	fs.StringVar(&o.ConfigFile, "authentication-config", o.ConfigFile, ""+
		"File with an AuthenticationConfiguration (apiserver.config.k8s.io) of issuers of JSON web tokens, such as OpenID Connect providers, and of anonymous requests. "+
		"The server reads it again when it changes, except for anonymous requests.")
}

func (o *BuiltInAuthenticationOptions) complete(flags *pflag.FlagSet) {
	o.anonymousSet = flags.Changed("anonymous-auth")
}

// applyBuiltInAuthentication makes the server authenticate by certificates of the CAs,
// and as the options say.
func (o *Options) applyBuiltInAuthentication(generic *genericapiserver.RecommendedConfig, clientCAs []dynamiccertificates.CAContentProvider) (standalone.Authentication, error) {
	flags := o.BuiltInAuthentication
	anonymous := apiserverapi.AnonymousAuthConfig{Enabled: flags.Anonymous}
	var tokens []authenticator.Token
	if flags.TokenFile != "" {
		file, err := authentication.ReadTokenFile(flags.TokenFile)
		if err != nil {
			return standalone.Authentication{}, fmt.Errorf("--token-auth-file: %w", err)
		}
		tokens = append(tokens, file)
	}
	if flags.ConfigFile != "" {
		var egress egressselector.Lookup
		if generic.EgressSelector != nil {
			egress = generic.EgressSelector.Lookup
		}
		file, err := authentication.ReadConfigFile(flags.ConfigFile, egress, generic.APIServerID)
		if err != nil {
			return standalone.Authentication{}, fmt.Errorf("--authentication-config: %w", err)
		}
		if configured := file.Anonymous(); configured != nil {
			if flags.anonymousSet {
				return standalone.Authentication{}, errors.New("--anonymous-auth and the field anonymous in the file of --authentication-config cannot be used together")
			}
			anonymous = *configured
		}
		err = generic.AddPostStartHook("authentication-config", func(hook genericapiserver.PostStartHookContext) error { return file.Start(hook) })
		if err != nil {
			return standalone.Authentication{}, err
		}
		tokens = append(tokens, file)
	}
	describeAuthentication(generic, len(tokens) > 0)
	users := standalone.NewAuthentication(clientCAs, anonymous, tokens...)
	generic.Authentication.Authenticator = users.Request
	return users, nil
}

// describeAuthentication makes the OpenAPI documents say, as those of kube-apiserver do, that
// requests can be unauthorized, and whether they can have bearer tokens. Client certificates
// are not in OpenAPI 2.
func describeAuthentication(generic *genericapiserver.RecommendedConfig, tokens bool) {
	v2, v3 := spec.SecurityDefinitions{}, spec3.SecuritySchemes{}
	if tokens {
		const name, kind, field, in, description = "BearerToken", "apiKey", "authorization", "header", "Bearer Token authentication"
		v2[name] = &spec.SecurityScheme{SecuritySchemeProps: spec.SecuritySchemeProps{Type: kind, Name: field, In: in, Description: description}}
		v3[name] = &spec3.SecurityScheme{SecuritySchemeProps: spec3.SecuritySchemeProps{Type: kind, Name: field, In: in, Description: description}}
	}
	generic.OpenAPIConfig.SecurityDefinitions = &v2
	generic.OpenAPIV3Config.SecuritySchemes = v3
}
