// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/borough-io/borough/pkg/admission/clusterplugins"
	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/kubernetes"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apiserver"
	"github.com/borough-io/borough/pkg/authorization/rbac"
	"github.com/borough-io/borough/pkg/authorization/revocation"
	"github.com/borough-io/borough/pkg/standalone"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/visibility"
)

const (
	defaultEventTTL = time.Hour // as in Kubernetes
	// minEventTTL is a minimum because Events that are written at about the same time
	// share a lease of etcd, and expire together.
	minEventTTL = time.Minute
)

// standaloneWatchGrace is how long the server waits for watches to close when it
// shuts down.
const standaloneWatchGrace = 2 * time.Second

func (o *Options) validateStandalone() []error {
	errs := slices.Clone(o.ignored)
	if o.MaxNamespacesPerUser < 0 {
		errs = append(errs, fmt.Errorf("--max-namespaces-per-user must not be negative, but is %d", o.MaxNamespacesPerUser))
	}
	if o.EventTTL < minEventTTL {
		errs = append(errs, fmt.Errorf("--event-ttl must be at least %s, but is %s", minEventTTL, o.EventTTL))
	}
	// The serving certificate is for it.
	if host := o.Server.ExternalHost; host != "" && net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(strings.ToLower(host))) > 0 {
		errs = append(errs, fmt.Errorf("--external-hostname must be a DNS name or an IP address, not %q", host))
	}
	for _, plugin := range o.Admission.EnablePlugins {
		if slices.Contains(clusterplugins.Names(), plugin) {
			errs = append(errs, fmt.Errorf("--enable-admission-plugins: %s is configured by objects of a cluster and cannot be used with --standalone", plugin))
		}
	}
	if o.Features.EnablePriorityAndFairness {
		errs = append(errs, errors.New("--enable-priority-and-fairness is configured by objects of a cluster and cannot be used with --standalone"))
	}
	return errs
}

// applyStandalone configures authentication by client certificates and
// authorization by the policy.
func (o *Options) applyStandalone(generic *genericapiserver.RecommendedConfig, pki *standalone.PKI, config *apiserver.StandaloneConfig) error {
	clientCA, err := dynamiccertificates.NewDynamicCAContentFromFile("standalone-ca", pki.CAFile())
	if err != nil {
		return fmt.Errorf("read the CA: %w", err)
	}
	if generic.PublicAddress == nil { // neither --external-hostname nor --advertise-address
		generic.PublicAddress = net.ParseIP(o.localHost())
	}
	clientCAs := []dynamiccertificates.CAContentProvider{clientCA}
	if file := o.Authentication.ClientCert.ClientCA; file != "" {
		more, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca-file", file)
		if err != nil {
			return fmt.Errorf("read --client-ca-file: %w", err)
		}
		clientCAs = append(clientCAs, more)
	}
	if err := generic.Authentication.ApplyClientCert(dynamiccertificates.NewUnionCAContentProvider(clientCAs...), generic.SecureServing); err != nil {
		return err
	}
	users, err := o.applyBuiltInAuthentication(generic, clientCAs)
	if err != nil {
		return err
	}
	config.Tokens = users.Tokens
	if config.Client, err = rbacclient.NewForConfig(generic.LoopbackClientConfig); err != nil {
		return fmt.Errorf("create the loopback client for RBAC: %w", err)
	}
	generic.Authorization.Authorizer, err = standalone.NewAuthorizer(o.Authorization.AlwaysAllowPaths, config.Policy)
	return err
}

// newStandaloneConfig returns what the server has instead of a cluster, without what
// applyStandalone sets.
func (o *Options) newStandaloneConfig() *apiserver.StandaloneConfig {
	index := rbac.NewIndex(coregroup.WithOtherGroup)
	return &apiserver.StandaloneConfig{
		Index: index, Policy: rbac.NewAuthorizer(index), Views: visibility.New(index), MaxNamespacesPerUser: o.MaxNamespacesPerUser,
		DefaultLimits: o.DefaultLimits, EventTTL: o.EventTTL,
	}
}

// addStandalone makes the policy part of storage: it is content, a write to it is in
// force when it is answered, and it ends watches.
func addStandalone(config *storage.Config, s *apiserver.StandaloneConfig) {
	config.Namespaced = append(config.Namespaced, tenancy.GroupResources(kubernetes.NamespacedKinds())...)
	config.AwaitWrite = s.Views.AwaitWrite
	config.Feed, config.Followed = s.Views.Feed(), visibility.Resources()
	config.WrapWatch = func(ctx context.Context, w watch.Interface) watch.Interface {
		return revocation.Watch(ctx, w, s.Policy)
	}
}

// localHost returns the address of the server in the kubeconfigs.
func (o *Options) localHost() string {
	if o.SecureServing.BindAddress.IsUnspecified() {
		return "127.0.0.1"
	}
	return o.SecureServing.BindAddress.String()
}

// servingHosts returns the names and addresses that the serving certificate is
// for.
func (o *Options) servingHosts() []string {
	hosts := []string{"localhost", "127.0.0.1", "::1", o.localHost()}
	if o.Server.ExternalHost != "" {
		hosts = append(hosts, o.Server.ExternalHost)
	}
	if o.Server.AdvertiseAddress != nil {
		hosts = append(hosts, o.Server.AdvertiseAddress.String())
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
