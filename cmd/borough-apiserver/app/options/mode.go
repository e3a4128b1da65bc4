// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	"github.com/spf13/pflag"
)

// clusterFlags are the flags that have no effect with --standalone.
var clusterFlags = []string{
	"authentication-kubeconfig",
	"authentication-skip-lookup",
	"authentication-token-webhook-cache-ttl",
	"authentication-tolerate-lookup-failure",
	"authorization-broad-reviews",
	"authorization-kubeconfig",
	"authorization-webhook-cache-authorized-ttl",
	"authorization-webhook-cache-unauthorized-ttl",
	"cert-dir",
	"cluster-namespace-controllers",
	"couple-cluster-namespaces",
	"kubeconfig",
	"requestheader-allowed-names",
	"requestheader-client-ca-file",
	"requestheader-extra-headers-prefix",
	"requestheader-group-headers",
	"requestheader-uid-headers",
	"requestheader-username-headers",
	"serve-projects",
	"serving-cert-lifetime",
	"serving-cert-secret",
	"serving-cert-service",
}

// standaloneFlags are the flags that have no effect without --standalone.
var standaloneFlags = []struct{ name, why string }{
	{"anonymous-auth", "the cluster authenticates users"},
	{"authentication-config", "the cluster authenticates users"},
	{"default-limits", "the namespace default is created without limits"},
	{"event-ttl", "events are not served"},
	{"max-namespaces-per-user", "namespacerequests are not served"},
	{"token-auth-file", "the cluster authenticates users"},
}

// dependentFlags are the flags that have no effect without another one.
var dependentFlags = []struct {
	names []string
	needs string
}{
	{[]string{"audit-log-path", "audit-webhook-config-file"}, "audit-policy-file"},
	{[]string{"serving-cert-service", "serving-cert-lifetime"}, "serving-cert-secret"},
	{[]string{
		"requestheader-allowed-names", "requestheader-extra-headers-prefix", "requestheader-group-headers",
		"requestheader-uid-headers", "requestheader-username-headers",
	}, "requestheader-client-ca-file"},
}

// ignoredFlags returns an error for each flag that is set and has no effect.
func (o *Options) ignoredFlags(flags *pflag.FlagSet) (errs []error) {
	if o.Standalone {
		for _, name := range clusterFlags {
			if flags.Changed(name) {
				errs = append(errs, fmt.Errorf("--%s needs a cluster and cannot be used with --standalone", name))
			}
		}
	} else {
		for _, flag := range standaloneFlags {
			if flags.Changed(flag.name) {
				errs = append(errs, fmt.Errorf("--%s needs --standalone: in a cluster, %s", flag.name, flag.why))
			}
		}
	}
	if len(errs) > 0 {
		return errs
	}
	has := func(name string) bool { return flags.Lookup(name).Value.String() != "" }
	for _, dependent := range dependentFlags {
		for _, name := range dependent.names {
			if flags.Changed(name) && !has(dependent.needs) {
				errs = append(errs, fmt.Errorf("--%s needs --%s", name, dependent.needs))
			}
		}
	}
	for _, name := range []string{"serving-cert-secret", "tls-cert-file"} {
		if flags.Changed("cert-dir") && has(name) {
			errs = append(errs, fmt.Errorf("--cert-dir and --%s cannot be used together", name))
		}
	}
	return errs
}
