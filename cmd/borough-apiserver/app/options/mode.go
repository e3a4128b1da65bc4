// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"path"
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

// dependentFlags are the flags that have no effect without one of others. Names are patterns of
// path.Match.
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
			isNamed := func(pattern string) bool {
				matched, _ := path.Match(pattern, flag.Name) // the patterns are valid
				return matched
			}
			if slices.ContainsFunc(dependent.names, isNamed) && !slices.Contains(dependent.needs, flag.Name) {
				errs = append(errs, fmt.Errorf("--%s needs --%s", flag.Name, strings.Join(dependent.needs, " or --")))
			}
		})
	}
	// Such as a variable that is not set. Without the flag, objects are in the embedded etcd.
	if flags.Changed("etcd-servers") && o.Storage.Embedded() {
		errs = append(errs, errors.New("--etcd-servers must not be empty"))
	}
	for _, name := range []string{"serving-cert-secret", "tls-cert-file"} {
		if flags.Changed("cert-dir") && has(name) {
			errs = append(errs, fmt.Errorf("--cert-dir and --%s cannot be used together", name))
		}
	}
	return errs
}
