// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options has the flags of borough-controller-manager and makes its config
// from them.
package options

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	cliflag "k8s.io/component-base/cli/flag"
	componentconfig "k8s.io/component-base/config"
	leaderelectionoptions "k8s.io/component-base/config/options"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json

	"github.com/borough-io/borough/cmd/internal/client"
	"github.com/borough-io/borough/cmd/internal/flags"
	"github.com/borough-io/borough/cmd/internal/serving"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/controller/namespace/purge"
)

// Options are the flags of borough-controller-manager.
type Options struct {
	Client *client.Options

	// ConcurrentNamespaceSyncs is the number of Namespaces that are purged
	// concurrently. The same number of retries runs in addition.
	ConcurrentNamespaceSyncs int
	// PurgeAPIGroups are the API groups whose objects are purged.
	PurgeAPIGroups []string

	// HTTPBindAddress is the address that health and metrics are served on. If
	// empty, they are not served.
	HTTPBindAddress string

	Etcd           *EtcdOptions
	LeaderElection componentconfig.LeaderElectionConfiguration
	Logs           *logsapi.LoggingConfiguration
}

const (
	defaultLeaseName      = "borough-controller-manager"
	defaultLeaseNamespace = "borough-system"
	// podNamespaceFile has the namespace of the Pod that the process runs in.
	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// New returns the defaults.
func New() *Options {
	election := flags.NewLeaderElection()
	election.ResourceLock, election.ResourceName = resourcelock.LeasesResourceLock, defaultLeaseName
	return &Options{
		Client:                   client.New(),
		ConcurrentNamespaceSyncs: 10,
		PurgeAPIGroups:           []string{v1.SchemeGroupVersion.Group},
		HTTPBindAddress:          "127.0.0.1:10280",
		Etcd:                     newEtcdOptions(),
		LeaderElection:           election,
		Logs:                     logsapi.NewLoggingConfiguration(),
	}
}

// Flags returns the flags in named sets.
func (o *Options) Flags() (sets cliflag.NamedFlagSets) {
	o.Client.AddFlags(sets.FlagSet("client"))

	fs := sets.FlagSet("namespace controller")
	fs.IntVar(&o.ConcurrentNamespaceSyncs, "concurrent-namespace-syncs", o.ConcurrentNamespaceSyncs, ""+
		"Number of Namespaces that are purged concurrently. In addition, up to the same number of retries run concurrently, for Namespaces whose content remains, whose purge failed, or whose purge takes long.")
	fs.StringSliceVar(&o.PurgeAPIGroups, "purge-api-groups", o.PurgeAPIGroups, ""+
		"API groups whose objects are deleted with their Namespace, or '*' for all groups that the server serves. In a cluster, "+
		"objects of other groups belong to the namespace of the cluster with the same name.")

	o.Etcd.addFlags(sets.FlagSet("etcd certificates"))

	serving.AddFlag(sets.FlagSet("serving"), &o.HTTPBindAddress)

	fs = sets.FlagSet("leader election")
	leaderelectionoptions.BindLeaderElectionFlags(&o.LeaderElection, fs)
	fs.Lookup("leader-elect-resource-namespace").Usage += " If empty, the namespace of the Pod that the process runs in or, outside a Pod, " + defaultLeaseNamespace + "."
	logsapi.AddFlags(o.Logs, sets.FlagSet("logs"))
	return sets
}

// Complete sets the default namespace of the Lease, which depends on where the
// process runs.
func (o *Options) Complete() error {
	if o.LeaderElection.LeaderElect && o.LeaderElection.ResourceNamespace == "" {
		namespace, err := os.ReadFile(podNamespaceFile)
		switch namespace = bytes.TrimSpace(namespace); {
		case err == nil && len(namespace) > 0:
			o.LeaderElection.ResourceNamespace = string(namespace)
		case err == nil || os.IsNotExist(err):
			o.LeaderElection.ResourceNamespace = defaultLeaseNamespace
		default:
			return fmt.Errorf("read the default of --leader-elect-resource-namespace: %w", err)
		}
	}
	return nil
}

// Validate returns all invalid flags, as one error.
func (o *Options) Validate() error {
	errs := o.Client.Validate()
	invalid := func(flag, format string, args ...any) {
		errs = append(errs, fmt.Errorf("--%s: "+format, append([]any{flag}, args...)...))
	}
	if o.ConcurrentNamespaceSyncs < 1 {
		invalid("concurrent-namespace-syncs", "must be at least 1, not %d", o.ConcurrentNamespaceSyncs)
	}
	own := v1.SchemeGroupVersion.Group
	if !slices.Contains(o.PurgeAPIGroups, own) && !slices.Contains(o.PurgeAPIGroups, purge.AllGroups) {
		invalid("purge-api-groups", "must include %s, or no Namespace could be purged", own)
	}
	for _, group := range o.PurgeAPIGroups {
		if group == purge.AllGroups {
			continue
		}
		for _, reason := range validation.IsDNS1123Subdomain(group) {
			invalid("purge-api-groups", "%q: %s", group, reason)
		}
	}
	if err := serving.Validate(o.HTTPBindAddress); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, o.Etcd.validate()...)
	if o.LeaderElection.LeaderElect {
		errs = append(errs, flags.CheckLeaderElection(o.LeaderElection)...)
		o.validateLease(invalid)
	}
	return utilerrors.NewAggregate(errs)
}

func (o *Options) validateLease(invalid func(flag, format string, args ...any)) {
	le := o.LeaderElection
	if le.ResourceLock != resourcelock.LeasesResourceLock {
		invalid("leader-elect-resource-lock", "must be %q, not %q", resourcelock.LeasesResourceLock, le.ResourceLock)
	}
	for _, reason := range validation.IsDNS1123Subdomain(le.ResourceName) {
		invalid("leader-elect-resource-name", "%q: %s", le.ResourceName, reason)
	}
	for _, reason := range validation.IsDNS1123Label(le.ResourceNamespace) {
		invalid("leader-elect-resource-namespace", "%q: %s", le.ResourceNamespace, reason)
	}
}
