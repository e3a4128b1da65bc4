// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"slices"
	"strings"

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

// dependentFlags are the flags that have no effect without one of others. A name that ends
// with * stands for all that begin so.
var dependentFlags = []struct {
	names, needs []string
}{
	{[]string{"audit-log-path", "audit-webhook-config-file"}, []string{"audit-policy-file"}},
	{[]string{"audit-policy-file"}, []string{"audit-log-path", "audit-webhook-config-file"}},
	{[]string{"audit-log-*"}, []string{"audit-log-path"}},
	{[]string{"audit-webhook-*"}, []string{"audit-webhook-config-file"}},
	{[]string{"serving-cert-service", "serving-cert-lifetime"}, []string{"serving-cert-secret"}},
	{[]string{
		"requestheader-allowed-names", "requestheader-extra-headers-prefix", "requestheader-group-headers",
		"requestheader-uid-headers", "requestheader-username-headers",
	}, []string{"requestheader-client-ca-file"}},
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
	has := func(name string) bool {
		flag := flags.Lookup(name)
		return flag != nil && flag.Value.String() != ""
	}
	for _, dependent := range dependentFlags {
		if slices.ContainsFunc(dependent.needs, has) {
			continue
		}
		flags.Visit(func(flag *pflag.Flag) { // those that are set
			if !slices.Contains(dependent.needs, flag.Name) && slices.ContainsFunc(dependent.names, func(name string) bool { return matches(flag.Name, name) }) {
				errs = append(errs, fmt.Errorf("--%s needs --%s", flag.Name, strings.Join(dependent.needs, " or --")))
			}
		})
	}
	for _, name := range []string{"serving-cert-secret", "tls-cert-file"} {
		if flags.Changed("cert-dir") && has(name) {
			errs = append(errs, fmt.Errorf("--cert-dir and --%s cannot be used together", name))
		}
	}
	return errs
}

// matches reports whether a flag has a name of dependentFlags.
func matches(flag, name string) bool {
	prefix, all := strings.CutSuffix(name, "*")
	return flag == name || all && strings.HasPrefix(flag, prefix)
}
