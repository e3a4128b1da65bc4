// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What libc and the kubelet can handle.
const (
	maxNameservers      = 3
	maxSearchPaths      = 32
	maxSearchPathChars  = 2048
	maxHostnameOverride = 64
)

func validateDNSConfig(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	config, servers, searches := spec.DNSConfig, path.Child("nameservers"), path.Child("searches")
	if config == nil {
		if spec.DNSPolicy == corev1.DNSNone {
			return field.ErrorList{field.Required(path, fmt.Sprintf("must provide `dnsConfig` when `dnsPolicy` is %s", corev1.DNSNone))}
		}
		return nil
	}
	if spec.DNSPolicy == corev1.DNSNone && len(config.Nameservers) == 0 {
		return field.ErrorList{field.Required(servers, fmt.Sprintf("must provide at least one DNS nameserver when `dnsPolicy` is %s", corev1.DNSNone))}
	}
	var errs field.ErrorList
	if len(config.Nameservers) > maxNameservers {
		errs = append(errs, field.Invalid(servers, config.Nameservers, fmt.Sprintf("must not have more than %d nameservers", maxNameservers)))
	}
	for i, server := range config.Nameservers {
		errs = append(errs, validateIP(server, nil, servers.Index(i))...)
	}
	if len(config.Searches) > maxSearchPaths {
		errs = append(errs, field.Invalid(searches, config.Searches, fmt.Sprintf("must not have more than %d search paths", maxSearchPaths)))
	}
	if len(strings.Join(config.Searches, " ")) > maxSearchPathChars {
		errs = append(errs, field.Invalid(searches, config.Searches, fmt.Sprintf("must not have more than %d characters (including spaces) in the search list", maxSearchPathChars)))
	}
	for i, search := range config.Searches {
		if search != "." {
			search = strings.TrimSuffix(search, ".")
			errs = append(errs, invalid(searches.Index(i), search, validation.IsDNS1123SubdomainWithUnderscore(search))...)
		}
	}
	for i, option := range config.Options {
		if option.Name == "" {
			errs = append(errs, field.Required(path.Child("options").Index(i), "must not be empty"))
		}
	}
	return errs
}

// validateIP checks for an address in its one unambiguous form, or for one of
// the old values, which may be in another.
func validateIP(ip string, old []string, path *field.Path) field.ErrorList {
	return validation.IsValidIPForLegacyField(path, ip, true, old)
}

func validateHostAliases(aliases []corev1.HostAlias, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, alias := range aliases {
		path := path.Index(i)
		errs = append(errs, validateIP(alias.IP, nil, path.Child("ip"))...)
		for j, name := range alias.Hostnames {
			errs = append(errs, dnsSubdomain(path.Child("hostnames").Index(j), name)...)
		}
	}
	return errs
}

// validateHostNetworkPorts checks that container ports in the network of the node
// equal the host ports.
func validateHostNetworkPorts(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	if !spec.HostNetwork {
		return nil
	}
	var errs field.ErrorList
	for i := range spec.Containers {
		for j, port := range spec.Containers[i].Ports {
			if port.HostPort != port.ContainerPort {
				errs = append(errs, field.Invalid(path.Index(i).Child("ports").Index(j).Child("hostPort"), port.HostPort,
					"must match `containerPort` when `hostNetwork` is true"))
			}
		}
	}
	return errs
}

func validateHostnameOverride(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	name := spec.HostnameOverride
	if name == nil {
		return nil
	}
	var errs field.ErrorList
	if spec.SetHostnameAsFQDN != nil && *spec.SetHostnameAsFQDN {
		errs = append(errs, field.Forbidden(path, "may not be specified when setHostnameAsFQDN is true"))
	}
	if spec.HostNetwork {
		errs = append(errs, field.Forbidden(path, "may not be specified when hostNetwork is true"))
	}
	if len(*name) > maxHostnameOverride {
		errs = append(errs, field.TooLong(path, *name, maxHostnameOverride))
	}
	return append(errs, dnsSubdomain(path, *name)...)
}
