// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options turns the flags of borough-controller-manager into its
// config.
package options

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	cliflag "k8s.io/component-base/cli/flag"
	componentconfig "k8s.io/component-base/config"
	leaderelectionoptions "k8s.io/component-base/config/options"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/controller/namespace/deletion"
)

// Options are the flags of borough-controller-manager.
type Options struct {
	// Kubeconfig is where the API is; empty means the cluster that the process
	// runs in.
	Kubeconfig string
	// KubeAPIQPS and KubeAPIBurst limit the requests to the API; a negative
	// rate is no limit.
	KubeAPIQPS   float32
	KubeAPIBurst int

	// ConcurrentNamespaceSyncs is how many Namespaces are purged at once for
	// the first time, and how many more that did not get through then.
	ConcurrentNamespaceSyncs int
	// PurgeAPIGroups are the API groups whose kinds are purged.
	PurgeAPIGroups []string

	// HTTPBindAddress is where health and metrics are served; empty means
	// nowhere.
	HTTPBindAddress string

	LeaderElection componentconfig.LeaderElectionConfiguration
	Logs           *logsapi.LoggingConfiguration
}

const (
	defaultLeaseName      = "borough-controller-manager"
	defaultLeaseNamespace = "borough-system"
	// podNamespaceFile tells a process in a Pod its namespace.
	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// New returns the defaults.
func New() *Options {
	return &Options{
		KubeAPIQPS:               -1,
		KubeAPIBurst:             100,
		ConcurrentNamespaceSyncs: 10,
		PurgeAPIGroups:           []string{v1.SchemeGroupVersion.Group},
		HTTPBindAddress:          "127.0.0.1:10280",
		LeaderElection: componentconfig.LeaderElectionConfiguration{
			LeaderElect:   true,
			LeaseDuration: metav1.Duration{Duration: 15 * time.Second},
			RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
			RetryPeriod:   metav1.Duration{Duration: 2 * time.Second},
			ResourceLock:  resourcelock.LeasesResourceLock,
			ResourceName:  defaultLeaseName,
		},
		Logs: logsapi.NewLoggingConfiguration(),
	}
}

// Flags returns the flags in named sets.
func (o *Options) Flags() (sets cliflag.NamedFlagSets) {
	fs := sets.FlagSet("client")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, ""+
		"Kubeconfig for the server that serves Borough's API. If empty, that of the cluster that the process runs in.")
	fs.Float32Var(&o.KubeAPIQPS, "kube-api-qps", o.KubeAPIQPS, ""+
		"Requests per second to send to the server at most. -1 for no limit: the server has its own.")
	fs.IntVar(&o.KubeAPIBurst, "kube-api-burst", o.KubeAPIBurst, ""+
		"Requests to send at once before --kube-api-qps applies.")

	fs = sets.FlagSet("namespace controller")
	fs.IntVar(&o.ConcurrentNamespaceSyncs, "concurrent-namespace-syncs", o.ConcurrentNamespaceSyncs, ""+
		"Namespaces to purge at once. As many again that wait for content or failed before are tried beside them.")
	fs.StringSliceVar(&o.PurgeAPIGroups, "purge-api-groups", o.PurgeAPIGroups, ""+
		"API groups whose objects go with their Namespace, or '*' for all that the server has. In a host cluster, "+
		"objects of other groups belong to the cluster's own namespace of that name.")

	fs = sets.FlagSet("serving")
	fs.StringVar(&o.HTTPBindAddress, "http-bind-address", o.HTTPBindAddress, ""+
		"Address and port to serve /healthz, /livez, /readyz and /metrics on, over plain HTTP. Empty for none.")

	fs = sets.FlagSet("leader election")
	leaderelectionoptions.BindLeaderElectionFlags(&o.LeaderElection, fs)
	fs.Lookup("leader-elect-resource-namespace").Usage += " If empty, that of the Pod that the process runs in, else " + defaultLeaseNamespace + "."
	logsapi.AddFlags(o.Logs, sets.FlagSet("logs"))
	return sets
}

// Complete fills in what follows from where the process runs.
func (o *Options) Complete() error {
	if o.LeaderElection.LeaderElect && o.LeaderElection.ResourceNamespace == "" {
		namespace, err := os.ReadFile(podNamespaceFile)
		switch namespace = bytes.TrimSpace(namespace); {
		case err == nil && len(namespace) > 0:
			o.LeaderElection.ResourceNamespace = string(namespace)
		case err == nil || os.IsNotExist(err):
			o.LeaderElection.ResourceNamespace = defaultLeaseNamespace
		default:
			return fmt.Errorf("find out --leader-elect-resource-namespace: %w", err)
		}
	}
	return nil
}

// Validate returns all that is wrong with the flags, in one error.
func (o *Options) Validate() error {
	var errs []error
	invalid := func(flag, format string, args ...any) {
		errs = append(errs, fmt.Errorf("--%s: "+format, append([]any{flag}, args...)...))
	}
	if o.KubeAPIQPS == 0 {
		invalid("kube-api-qps", "must not be 0; -1 is no limit")
	}
	if o.KubeAPIQPS > 0 && o.KubeAPIBurst < 1 {
		invalid("kube-api-burst", "must be at least 1 with a --kube-api-qps, not %d", o.KubeAPIBurst)
	}
	if o.ConcurrentNamespaceSyncs < 1 {
		invalid("concurrent-namespace-syncs", "must be at least 1, not %d", o.ConcurrentNamespaceSyncs)
	}
	own := v1.SchemeGroupVersion.Group
	if !slices.Contains(o.PurgeAPIGroups, own) && !slices.Contains(o.PurgeAPIGroups, deletion.AllGroups) {
		invalid("purge-api-groups", "must have %s, without which no Namespace could go", own)
	}
	for _, group := range o.PurgeAPIGroups {
		if group == deletion.AllGroups {
			continue
		}
		for _, reason := range validation.IsDNS1123Subdomain(group) {
			invalid("purge-api-groups", "%q: %s", group, reason)
		}
	}
	if o.HTTPBindAddress != "" {
		if err := validateAddress(o.HTTPBindAddress); err != nil {
			invalid("http-bind-address", "%w", err)
		}
	}
	if o.LeaderElection.LeaderElect {
		o.validateLeaderElection(invalid)
	}
	return utilerrors.NewAggregate(errs)
}

func (o *Options) validateLeaderElection(invalid func(flag, format string, args ...any)) {
	le := o.LeaderElection
	if le.RetryPeriod.Duration <= 0 {
		invalid("leader-elect-retry-period", "must be more than 0, not %s", le.RetryPeriod.Duration)
	}
	// The election waits up to a fifth longer between two attempts.
	if le.RenewDeadline.Duration <= le.RetryPeriod.Duration+le.RetryPeriod.Duration/5 {
		invalid("leader-elect-renew-deadline", "must be more than 1.2 times --leader-elect-retry-period, not %s", le.RenewDeadline.Duration)
	}
	if le.LeaseDuration.Duration <= le.RenewDeadline.Duration {
		invalid("leader-elect-lease-duration", "must be more than --leader-elect-renew-deadline, not %s", le.LeaseDuration.Duration)
	}
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

func validateAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if host != "" && net.ParseIP(host) == nil {
		return fmt.Errorf("%q is no IP address", host)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q is no port", port)
	}
	return nil
}
