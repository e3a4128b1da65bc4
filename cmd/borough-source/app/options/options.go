// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options has the flags of borough-source and makes its config from them.
package options

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	componentconfig "k8s.io/component-base/config"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json

	"github.com/borough-io/borough/cmd/internal/client"
	"github.com/borough-io/borough/cmd/internal/flags"
	"github.com/borough-io/borough/cmd/internal/serving"
	"github.com/borough-io/borough/pkg/controller/podsource"
	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/pkg/source/filesource"
	"github.com/borough-io/borough/pkg/source/httpsource"
)

// Options are the flags of borough-source.
type Options struct {
	Client *client.Options

	// From are the sources: paths and HTTPS URLs.
	From []string
	// Node is the name of the node that the Pods are assigned to.
	Node string
	// Namespace is the Namespace of the Pods. If empty, each source has its own.
	Namespace string
	HTTP      httpsource.Options

	// Once makes the process exit when the Pods are those of the sources.
	Once bool
	// OnceTimeout is how long that may take.
	OnceTimeout time.Duration
	// DryRun prints what would change, and changes nothing.
	DryRun bool
	// PruneNamespace deletes the Namespaces of the sources at the end.
	PruneNamespace bool

	// LeaderElection is about the Leases of the sources.
	LeaderElection componentconfig.LeaderElectionConfiguration

	// HTTPBindAddress is the address that health and metrics are served on. If
	// empty, they are not served.
	HTTPBindAddress string
	Logs            *logsapi.LoggingConfiguration
}

// minInterval bounds the load of a server by a source.
const minInterval = time.Second

// New returns the defaults.
func New() *Options {
	return &Options{
		Client:          client.New(),
		HTTP:            httpsource.Options{Interval: 20 * time.Second, Timeout: 10 * time.Second},
		OnceTimeout:     5 * time.Minute,
		HTTPBindAddress: "127.0.0.1:10281",
		LeaderElection:  flags.NewLeaderElection(),
		Logs:            logsapi.NewLoggingConfiguration(),
	}
}

// Flags returns the flags in named sets.
func (o *Options) Flags() (sets cliflag.NamedFlagSets) {
	o.Client.AddFlags(sets.FlagSet("client"))

	fs := sets.FlagSet("sources")
	fs.StringArrayVar(&o.From, "from", o.From, ""+
		"Source of Pods: a file, a directory with files *.yaml, *.yml and *.json, or an https:// URL. The flag can be repeated. Required.")
	fs.StringVar(&o.Node, "node", o.Node, ""+
		"Name of the node that the Pods are assigned to. The name of a Pod ends with it. Required.")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, ""+
		"Namespace of the Pods. If empty, each source has its own, whose name depends on the node and the source alone.")
	fs.DurationVar(&o.HTTP.Interval, "url-interval", o.HTTP.Interval, ""+
		"Time between two requests to a URL, at least 1s. After a failure, the time doubles from 1 second to 5 minutes. Up to a fifth of it is added at random.")
	fs.DurationVar(&o.HTTP.Timeout, "url-timeout", o.HTTP.Timeout, ""+
		"Time after which a request to a URL has failed.")
	fs.StringVar(&o.HTTP.CAFile, "url-ca-file", o.HTTP.CAFile, ""+
		"File with the CAs of the servers of URLs, in PEM. If empty, the CAs of the system.")
	fs.StringVar(&o.HTTP.CertFile, "url-client-certificate", o.HTTP.CertFile, ""+
		"File with the client certificate for URLs, in PEM.")
	fs.StringVar(&o.HTTP.KeyFile, "url-client-key", o.HTTP.KeyFile, ""+
		"File with the key of --url-client-certificate, in PEM.")
	fs.StringVar(&o.HTTP.TokenFile, "url-token-file", o.HTTP.TokenFile, ""+
		"File with a bearer token for URLs. The CA, certificate, key and token files are read again for each request.")

	fs = sets.FlagSet("run mode")
	fs.BoolVar(&o.Once, "once", o.Once, ""+
		"Exit when the Pods are those of the sources: with 0, or with 1 if a source cannot be read or a Pod is refused.")
	fs.DurationVar(&o.OnceTimeout, "once-timeout", o.OnceTimeout, ""+
		"Time after which --once exits with 1. It needs --once.")
	fs.BoolVar(&o.DryRun, "dry-run", o.DryRun, ""+
		"Print what would change, as a diff of each Pod, and exit. Nothing is changed.")
	fs.BoolVar(&o.PruneNamespace, "prune-namespace", o.PruneNamespace, ""+
		"Delete the Namespace of each source, with the Pods, when the process is ended by SIGINT or SIGTERM.")

	fs = sets.FlagSet("leader election")
	fs.BoolVar(&o.LeaderElection.LeaderElect, "leader-elect", o.LeaderElection.LeaderElect, ""+
		"Write only while this process holds the Lease of the source, so that a second process for the same source waits.")
	fs.DurationVar(&o.LeaderElection.LeaseDuration.Duration, "leader-elect-lease-duration", o.LeaderElection.LeaseDuration.Duration, ""+
		"Time after which another process takes over a Lease that is not renewed.")
	fs.DurationVar(&o.LeaderElection.RenewDeadline.Duration, "leader-elect-renew-deadline", o.LeaderElection.RenewDeadline.Duration, ""+
		"Time without a renewal of the Lease after which the process stops writing.")
	fs.DurationVar(&o.LeaderElection.RetryPeriod.Duration, "leader-elect-retry-period", o.LeaderElection.RetryPeriod.Duration, ""+
		"Time between two attempts to acquire or renew a Lease.")
	fs.StringVar(&o.LeaderElection.ResourceNamespace, "leader-elect-resource-namespace", o.LeaderElection.ResourceNamespace, ""+
		"Namespace of the Leases. In a cluster, it is required, and is a namespace of the cluster. If empty, the Namespace of the source.")

	serving.AddFlag(sets.FlagSet("serving"), &o.HTTPBindAddress)
	logsapi.AddFlags(o.Logs, sets.FlagSet("logs"))
	return sets
}

// Validate returns all invalid flags, as one error.
func (o *Options) Validate() error {
	errs := o.Client.Validate()
	invalid := func(flag, format string, args ...any) {
		errs = append(errs, fmt.Errorf("--%s: "+format, append([]any{flag}, args...)...))
	}
	if o.Node == "" {
		invalid("node", "is required")
	} else if reasons := validation.IsDNS1123Subdomain(o.Node); len(reasons) > 0 {
		invalid("node", "%q: %s", o.Node, strings.Join(reasons, "; "))
	}
	if len(o.From) == 0 {
		invalid("from", "is required")
	}
	if _, err := o.sources(); err != nil {
		errs = append(errs, err)
	}
	for _, namespace := range []struct{ flag, name string }{
		{"namespace", o.Namespace}, {"leader-elect-resource-namespace", o.LeaderElection.ResourceNamespace},
	} {
		if reasons := validation.IsDNS1123Label(namespace.name); namespace.name != "" && len(reasons) > 0 {
			invalid(namespace.flag, "%q: %s", namespace.name, strings.Join(reasons, "; "))
		}
	}
	for _, timeout := range []struct {
		flag  string
		value time.Duration
	}{{"url-timeout", o.HTTP.Timeout}, {"once-timeout", o.OnceTimeout}} {
		if timeout.value <= 0 {
			invalid(timeout.flag, "must be more than 0, not %s", timeout.value)
		}
	}
	if o.HTTP.Interval < minInterval {
		invalid("url-interval", "must be at least %s, not %s", minInterval, o.HTTP.Interval)
	}
	if (o.HTTP.CertFile == "") != (o.HTTP.KeyFile == "") {
		errs = append(errs, errors.New("--url-client-certificate and --url-client-key must be set together"))
	}
	if !o.Once && o.OnceTimeout != New().OnceTimeout {
		errs = append(errs, errors.New("--once-timeout needs --once"))
	}
	if o.Once && o.DryRun {
		errs = append(errs, errors.New("--once and --dry-run cannot be set together"))
	}
	if o.PruneNamespace && (o.Once || o.DryRun || o.Namespace != "") {
		errs = append(errs, errors.New("--prune-namespace cannot be set together with --once, --dry-run or --namespace"))
	}
	if err := serving.Validate(o.HTTPBindAddress); err != nil {
		errs = append(errs, err)
	}
	if o.LeaderElection.LeaderElect {
		errs = append(errs, flags.CheckLeaderElection(o.LeaderElection)...)
	}
	return utilerrors.NewAggregate(errs)
}

// sources returns the sources, which differ.
func (o *Options) sources() ([]source.Identity, error) {
	var identities []source.Identity
	ids := map[string]bool{}
	for _, from := range o.From {
		identity, err := source.Parse(from, o.Node)
		if err != nil {
			return nil, fmt.Errorf("--from: %w", err)
		}
		if ids[identity.ID()] {
			return nil, fmt.Errorf("--from: %s is given twice", identity)
		}
		ids[identity.ID()] = true
		identities = append(identities, identity)
	}
	return identities, nil
}

// Config is the configuration of a process.
type Config struct {
	// Client is the config of the client for the server that serves Borough's API.
	Client *rest.Config
	// AwaitClientChange returns an error when the process has to be started again to use the
	// client's configuration. It may be nil.
	AwaitClientChange func(context.Context) error
	// Sources are the configurations of the controllers, one for each source.
	Sources []podsource.Config
	// Once makes the process exit when the Pods are those of the sources, within
	// OnceTimeout.
	Once        bool
	OnceTimeout time.Duration
	// DryRun prints what would change.
	DryRun bool
	// HTTPBindAddress is the address that health and metrics are served on. If
	// empty, they are not served.
	HTTPBindAddress string
}

// Config returns the config for the validated options.
func (o *Options) Config() (*Config, error) {
	client, err := o.Client.Config("borough-source")
	if err != nil {
		return nil, err
	}
	config := &Config{
		Client:            client,
		AwaitClientChange: o.Client.AwaitChange,
		Once:              o.Once,
		OnceTimeout:       o.OnceTimeout,
		DryRun:            o.DryRun,
		HTTPBindAddress:   o.HTTPBindAddress,
	}
	identities, err := o.sources()
	if err != nil {
		return nil, err
	}
	for _, identity := range identities {
		var reader source.Reader = filesource.New(identity.Location)
		if identity.Kind == source.HTTP {
			if reader, err = httpsource.New(identity.Location, o.HTTP); err != nil {
				return nil, fmt.Errorf("--from=%s: %w", identity, err)
			}
		}
		config.Sources = append(config.Sources, podsource.Config{
			Source:         identity,
			Reader:         reader,
			Namespace:      o.Namespace,
			LeaderElection: o.LeaderElection,
			Prune:          o.PruneNamespace,
		})
	}
	return config, nil
}
