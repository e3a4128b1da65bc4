// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options turns the flags of borough-apiserver into the config of a
// server.
package options

import (
	"crypto/tls"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/server/flagz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/component-base/version"

	"github.com/borough-io/borough/pkg/admission/clusterplugins"
	"github.com/borough-io/borough/pkg/apiserver"
	"github.com/borough-io/borough/pkg/requestlimits"
	"github.com/borough-io/borough/pkg/storage"
)

// Options are the flags of borough-apiserver.
type Options struct {
	// Standalone runs the server without a cluster.
	Standalone bool
	// DataDir is the directory for the files of the server: the embedded etcd
	// and, if Standalone, certificates and kubeconfigs.
	DataDir string
	// EphemeralEtcd makes the embedded etcd ephemeral. It has no flag, because it is for
	// tests.
	EphemeralEtcd bool
	// Cluster applies unless Standalone.
	Cluster *ClusterOptions
	// MaxNamespacesPerUser is how many Namespaces a user may have that were created by
	// namespacerequests. 0 means no limit. It needs Standalone.
	MaxNamespacesPerUser int
	// DefaultLimits creates the Namespace default with a LimitRange. It applies if
	// Standalone.
	DefaultLimits bool
	// EventTTL is how long an Event is kept after it was last written. It applies if
	// Standalone. Default: 1 hour.
	EventTTL time.Duration
	// BuiltInAuthentication applies if Standalone.
	BuiltInAuthentication *BuiltInAuthenticationOptions

	Server         *genericoptions.ServerRunOptions
	Storage        *storage.Options
	SecureServing  *genericoptions.SecureServingOptions
	Authentication *genericoptions.DelegatingAuthenticationOptions
	Authorization  *genericoptions.DelegatingAuthorizationOptions
	CoreAPI        *genericoptions.CoreAPIOptions
	Admission      *genericoptions.AdmissionOptions
	Audit          *genericoptions.AuditOptions
	Features       *genericoptions.FeatureOptions
	EgressSelector *genericoptions.EgressSelectorOptions
	Traces         *genericoptions.TracingOptions
	Logs           *logsapi.LoggingConfiguration

	scheme            *runtime.Scheme
	codecs            serializer.CodecFactory
	pendingNamespaces *clusterplugins.PendingNamespaces
	ignored           []error      // of ignoredFlags
	flagz             flagz.Reader // of the flags that Complete got
}

const (
	// DefaultDataDir is the default of DataDir.
	DefaultDataDir = ".borough"
	// PKIDir is the directory in DataDir with the certificates and keys.
	PKIDir = "pki"
	// AdminKubeconfig is the file in DataDir with the kubeconfig of the admin.
	AdminKubeconfig = "admin.kubeconfig"
	// ControllerKubeconfig is the file in DataDir with the kubeconfig of the controller.
	ControllerKubeconfig = "controller.kubeconfig"

	defaultPort = 6443
	// Behind kube-apiserver many clients and their watches share one connection.
	// This is the value that the library recommends for that.
	http2MaxStreams = 1000
)

// New returns the defaults.
func New() *Options {
	scheme := apiserver.NewScheme()
	codecs := serializer.NewCodecFactory(scheme)
	pendingNamespaces := clusterplugins.NewPendingNamespaces()

	setFeatureDefaults()
	// The feature gates of the library follow the version of Kubernetes of the
	// library, not the version of Borough.
	globals := compatibility.NewComponentGlobalsRegistry()
	utilruntime.Must(globals.Register(compatibility.DefaultKubeComponent,
		compatibility.NewEffectiveVersionFromString(version.DefaultKubeBinaryVersion, "", ""), utilfeature.DefaultMutableFeatureGate))

	server := genericoptions.NewServerRunOptionsForComponent(compatibility.DefaultKubeComponent, globals)
	server.JSONPatchMaxCopyBytes = requestlimits.MaxPatchCopyBytes

	serving := genericoptions.NewSecureServingOptions()
	serving.BindPort = defaultPort
	serving.HTTP2MaxStreamsPerConnection = http2MaxStreams
	serving.ServerCert.CertDirectory = ""
	serving.ServerCert.PairName = "apiserver"

	return &Options{
		DataDir: DefaultDataDir,
		Cluster: newClusterOptions(),

		DefaultLimits: true,
		EventTTL:      defaultEventTTL,

		BuiltInAuthentication: &BuiltInAuthenticationOptions{Anonymous: true},

		Server:            server,
		Storage:           storage.NewOptions(),
		SecureServing:     serving,
		Authentication:    genericoptions.NewDelegatingAuthenticationOptions(),
		Authorization:     genericoptions.NewDelegatingAuthorizationOptions(),
		CoreAPI:           genericoptions.NewCoreAPIOptions(),
		Admission:         newAdmissionOptions(pendingNamespaces),
		Audit:             genericoptions.NewAuditOptions(),
		Features:          genericoptions.NewFeatureOptions(),
		EgressSelector:    genericoptions.NewEgressSelectorOptions(),
		Traces:            genericoptions.NewTracingOptions(),
		Logs:              logsapi.NewLoggingConfiguration(),
		scheme:            scheme,
		codecs:            codecs,
		pendingNamespaces: pendingNamespaces,
	}
}

// setFeatureDefaults sets defaults of feature gates that differ from the library's. The
// gates are those of the process, and their defaults can be set only before they become
// flags. A process that has done that before, such as a test of a user, keeps its own.
var setFeatureDefaults = sync.OnceFunc(func() {
	// A goroutine for each event of a watch cache takes more CPU time than to decode
	// the event: 5 % of what it takes to create a Pod, and 12 % to purge one.
	_ = utilfeature.DefaultMutableFeatureGate.OverrideDefault(features.ConcurrentWatchObjectDecode, false)
	// For each event, a watch cache would keep the nodes of its tree that the event changes, 2 KiB,
	// until etcd is compacted five minutes later: 1 GiB for 1,500 writes in a second. It is 10 % of
	// the CPU time to create a Pod. Pages after the first are read from etcd instead.
	_ = utilfeature.DefaultMutableFeatureGate.OverrideDefault(features.ListFromCacheSnapshot, false)
	// It caches for 10 seconds who may impersonate whom, but a revocation has to be in
	// force when it is answered.
	_ = utilfeature.DefaultMutableFeatureGate.OverrideDefault(features.ConstrainedImpersonation, false)
})

// Flags returns the flags in named sets.
func (o *Options) Flags() (sets cliflag.NamedFlagSets) {
	fs := sets.FlagSet("borough")
	fs.BoolVar(&o.Standalone, "standalone", o.Standalone, ""+
		"Run without a cluster: create certificates, authenticate users by client certificates and by tokens, authorize them by RBAC, "+
		"and write kubeconfigs for the administrator and the controller into --data-dir.")
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, ""+
		"Directory for the files of the server: the embedded etcd, which runs unless --etcd-servers is set, "+
		"and, with --standalone, the certificates (pki/), admin.kubeconfig and controller.kubeconfig.")
	fs.IntVar(&o.MaxNamespacesPerUser, "max-namespaces-per-user", o.MaxNamespacesPerUser, ""+
		"With --standalone, the maximum number of Namespaces that each user may have that were created by NamespaceRequests of this user. 0 means no limit. "+
		"All servers on the same etcd must have the same value.")

	fs.DurationVar(&o.EventTTL, "event-ttl", o.EventTTL, ""+
		"With --standalone, how long an event is kept after it was last written. At least 1m.")
	fs.BoolVar(&o.DefaultLimits, "default-limits", o.DefaultLimits, ""+
		"With --standalone, create a LimitRange named limits when the server creates the Namespace default. "+
		"It sets a default CPU request of 100m for containers.")

	o.Server.AddUniversalFlags(sets.FlagSet("generic"))
	o.Storage.AddFlags(sets.FlagSet("etcd"))
	o.SecureServing.AddFlags(sets.FlagSet("secure serving"))
	cluster := sets.FlagSet("cluster")
	o.CoreAPI.AddFlags(cluster)
	o.Cluster.AddFlags(cluster)
	o.Authentication.AddFlags(sets.FlagSet("authentication"))
	o.BuiltInAuthentication.AddFlags(sets.FlagSet("authentication with --standalone"))
	o.Authorization.AddFlags(sets.FlagSet("authorization"))
	o.Admission.AddFlags(sets.FlagSet("admission"))
	o.Audit.AddFlags(sets.FlagSet("auditing"))
	o.Features.AddFlags(sets.FlagSet("features"))
	o.EgressSelector.AddFlags(sets.FlagSet("egress selector"))
	o.Traces.AddFlags(sets.FlagSet("traces"))
	logsapi.AddFlags(o.Logs, sets.FlagSet("logs"))
	for _, set := range sets.FlagSets {
		set.VisitAll(setUsage)
	}
	return sets
}

// Complete sets the defaults that depend on Standalone. The flags show which
// values were set by the user.
func (o *Options) Complete(flags *pflag.FlagSet) error {
	if err := o.Server.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	o.flagz = flagz.NamedFlagSetsReader{FlagSets: cliflag.NamedFlagSets{FlagSets: map[string]*pflag.FlagSet{"": flags}}}
	o.ignored = o.ignoredFlags(flags)
	o.BuiltInAuthentication.complete(flags)
	if o.Standalone {
		o.Cluster.Namespaces.Controllers = nil
		if !flags.Changed("bind-address") {
			o.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)
		}
		if !flags.Changed("shutdown-watch-termination-grace-period") {
			o.Server.ShutdownWatchTerminationGracePeriod = standaloneWatchGrace
		}
		// There is no garbage collector, so its finalizers would never be removed.
		o.Storage.Etcd.EnableGarbageCollection = o.Storage.Etcd.EnableGarbageCollection && flags.Changed("enable-garbage-collector")
		// Both are configured by objects of a cluster.
		o.Features.EnablePriorityAndFairness = o.Features.EnablePriorityAndFairness && flags.Changed("enable-priority-and-fairness")
		o.Admission.DefaultOffPlugins.Insert(clusterplugins.Names()...)
		return nil
	}
	if o.Authentication.RemoteKubeConfigFile == "" {
		o.Authentication.RemoteKubeConfigFile = o.CoreAPI.CoreAPIKubeconfigPath
	}
	if o.Authorization.RemoteKubeConfigFile == "" {
		o.Authorization.RemoteKubeConfigFile = o.CoreAPI.CoreAPIKubeconfigPath
	}
	return nil
}

// Validate returns all invalid options, as one error.
func (o *Options) Validate() error {
	validateMode := o.validateInCluster
	if o.Standalone {
		validateMode = o.validateStandalone
	}
	errs := validateMode()
	if o.DataDir == "" && (o.Standalone || o.Storage.Embedded()) {
		errs = append(errs, errors.New("--data-dir must not be empty"))
	}
	if o.SecureServing.BindPort == 0 {
		errs = append(errs, errors.New("--secure-port must not be 0: the server has no other port"))
	}
	if o.Server.RequestTimeout == 0 {
		errs = append(errs, errors.New("--request-timeout must not be 0: all requests would time out"))
	}
	if err := validateCipherSuites(o.SecureServing); err != nil {
		errs = append(errs, err)
	}
	if pair := o.SecureServing.ServerCert.CertKey; (pair.CertFile == "") != (pair.KeyFile == "") {
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file must be set together"))
	}
	for _, part := range [][]error{
		o.Server.Validate(),
		o.Storage.Validate(),
		o.SecureServing.Validate(),
		o.Authentication.Validate(),
		o.Authorization.Validate(),
		o.CoreAPI.Validate(),
		o.Admission.Validate(),
		o.validateAdmissionConfig(),
		o.Audit.Validate(),
		o.Features.Validate(),
		o.EgressSelector.Validate(),
		o.Traces.Validate(),
	} {
		errs = append(errs, part...)
	}
	return utilerrors.NewAggregate(errs)
}

// validateCipherSuites returns an error if HTTP/2 cannot be served with the cipher suites. The
// library panics then. It reports those that do not exist.
func validateCipherSuites(serving *genericoptions.SecureServingOptions) error {
	suites, err := cliflag.TLSCipherSuites(serving.CipherSuites)
	version, versionErr := cliflag.TLSVersion(serving.MinTLSVersion)
	if err != nil || versionErr != nil || version >= tls.VersionTLS13 || len(suites) == 0 || serving.DisableHTTP2Serving ||
		slices.Contains(suites, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256) || slices.Contains(suites, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256) {
		return nil
	}
	return errors.New("--tls-cipher-suites must contain TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, " +
		"which HTTP/2 requires, unless --tls-min-version is VersionTLS13 or --disable-http2-serving is set")
}

func (o *Options) inDataDir(name string) string {
	return filepath.Join(o.DataDir, name)
}
