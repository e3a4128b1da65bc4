// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/borough-io/borough/cmd/internal/flags"
	"github.com/borough-io/borough/pkg/certificates/etcdca"
)

// EtcdOptions are the options for the certificates of an etcd in the cluster.
type EtcdOptions struct {
	// CASecret, CertSecret and ClientCertSecret are the Secrets, NAMESPACE/NAME, of the
	// CA, of the members and of the clients. If all are empty, no certificates are
	// issued.
	CASecret, CertSecret, ClientCertSecret string
	// CertHosts are the DNS names and IP addresses of the members.
	CertHosts []string
	// CertLifetime is how long a certificate is valid.
	CertLifetime time.Duration
}

func newEtcdOptions() *EtcdOptions { return &EtcdOptions{CertLifetime: 90 * 24 * time.Hour} }

func (o *EtcdOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.CASecret, "etcd-ca-secret", o.CASecret, ""+
		"Secret of the cluster, NAMESPACE/NAME, with the CA of an etcd and its key, which the leader creates and renews. "+
		"The leader signs the certificates in --etcd-cert-secret and --etcd-client-cert-secret with it. If the flag is empty, the leader issues no certificates.")
	fs.StringVar(&o.CertSecret, "etcd-cert-secret", o.CertSecret, ""+
		"Secret of the cluster, NAMESPACE/NAME, with the certificate that the members of etcd share.")
	fs.StringVar(&o.ClientCertSecret, "etcd-client-cert-secret", o.ClientCertSecret, ""+
		"Secret of the cluster, NAMESPACE/NAME, with the certificate that the servers use as clients of etcd.")
	fs.StringSliceVar(&o.CertHosts, "etcd-cert-hosts", o.CertHosts, ""+
		"DNS names and IP addresses of the members of etcd. localhost and 127.0.0.1 are added.")
	fs.DurationVar(&o.CertLifetime, "etcd-cert-lifetime", o.CertLifetime, ""+
		"Validity of the certificates of etcd's members and clients. The leader issues the next one after 60% of it, and replaces one that is valid for longer.")
}

func (o *EtcdOptions) validate() []error {
	config, err := o.config()
	switch {
	case err != nil:
		return []error{err}
	case config == nil && (len(o.CertHosts) > 0 || o.CertLifetime != newEtcdOptions().CertLifetime):
		return []error{errors.New("--etcd-cert-hosts and --etcd-cert-lifetime need --etcd-ca-secret, --etcd-cert-secret and --etcd-client-cert-secret")}
	case config == nil:
		return nil
	}
	var errs []error
	if config.CA == config.Member || config.CA == config.Client || config.Member == config.Client {
		errs = append(errs, errors.New("--etcd-ca-secret, --etcd-cert-secret and --etcd-client-cert-secret must be different Secrets"))
	}
	if len(o.CertHosts) == 0 {
		errs = append(errs, errors.New("--etcd-cert-hosts is required with --etcd-cert-secret"))
	}
	for _, host := range o.CertHosts {
		if net.ParseIP(host) != nil {
			continue
		}
		for _, reason := range validation.IsDNS1123Subdomain(host) {
			errs = append(errs, fmt.Errorf("--etcd-cert-hosts: %q: %s", host, reason))
		}
	}
	if err := flags.CheckCertLifetime("etcd-cert-lifetime", o.CertLifetime); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// config returns nil if no certificates are to be issued.
func (o *EtcdOptions) config() (*etcdca.Config, error) {
	if o.CASecret == "" && o.CertSecret == "" && o.ClientCertSecret == "" {
		return nil, nil
	}
	config := &etcdca.Config{Hosts: o.CertHosts, Lifetime: o.CertLifetime}
	for _, secret := range []struct {
		flag, value string
		name        *types.NamespacedName
	}{
		{"etcd-ca-secret", o.CASecret, &config.CA},
		{"etcd-cert-secret", o.CertSecret, &config.Member},
		{"etcd-client-cert-secret", o.ClientCertSecret, &config.Client},
	} {
		var err error
		if *secret.name, err = flags.NamespacedName(secret.flag, secret.value); err != nil {
			return nil, err
		}
	}
	return config, nil
}
