// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/cmd/internal/flags"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/apiserver"
	"github.com/borough-io/borough/pkg/authorization/rbac"
	"github.com/borough-io/borough/pkg/certificates/servingcert"
	"github.com/borough-io/borough/pkg/clusternamespaces"
	"github.com/borough-io/borough/pkg/delegation"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/visibility"
)

// ClusterOptions are the options of a server behind a cluster's kube-apiserver.
type ClusterOptions struct {
	// Namespaces is the rule for the cluster's namespace controller.
	Namespaces clusternamespaces.Config
	// BroadReviews says that a right is reviewed for all namespaces first.
	BroadReviews bool
	// ServeProjects says that projects are served.
	ServeProjects bool
	// CertSecret is the Secret, NAMESPACE/NAME, in which the server keeps a
	// serving certificate that it creates. If empty, it creates none.
	CertSecret string
	// CertService is the Service, NAMESPACE/NAME, that the certificate is for.
	CertService string
	// CertLifetime is how long a certificate is valid.
	CertLifetime time.Duration
}

func newClusterOptions() *ClusterOptions {
	return &ClusterOptions{
		Namespaces:   clusternamespaces.Config{Controllers: clusternamespaces.DefaultControllers()},
		BroadReviews: true,
		CertService:  "borough-system/borough-apiserver",
		CertLifetime: 90 * 24 * time.Hour,
	}
}

// AddFlags adds the flags.
func (o *ClusterOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Namespaces.Couple, "couple-cluster-namespaces", o.Namespaces.Couple, ""+
		"Delete a Namespace when the namespace of the cluster with the same name is deleted. "+
		"Otherwise, the two are independent.")
	fs.StringSliceVar(&o.Namespaces.Controllers, "cluster-namespace-controllers", o.Namespaces.Controllers, ""+
		"Users that the cluster's namespace controller authenticates as. When it deletes the content of a namespace of the cluster, "+
		"it finds nothing in the Namespace with the same name, unless --couple-cluster-namespaces is set. "+
		"If it authenticates as another user, the server recognizes its user agent and returns 403 to a deletecollection in a Namespace that is not being deleted. "+
		"A listed user gets an empty list of the objects of a Namespace, so list only users that do nothing else.")
	fs.BoolVar(&o.BroadReviews, "authorization-broad-reviews", o.BroadReviews, ""+
		"Ask the cluster first whether a user may do what is requested in all namespaces, then in the namespace of the request, and only then to the object of the request. "+
		"A cached answer then holds for all objects, so far fewer reviews are needed. "+
		"Disable it if an authorizer of the cluster denies single namespaces or objects to users who have the right for all.")
	fs.BoolVar(&o.ServeProjects, "serve-projects", o.ServeProjects, ""+
		"Serve Projects, which show to each user the Namespaces that RBAC of the cluster lets the user get. "+
		"The server then needs the right to get, list and watch roles, rolebindings, clusterroles and clusterrolebindings of rbac.authorization.k8s.io in the cluster, "+
		"and the users need the right to get, list and watch projects. Rights that other authorizers of the cluster give are not considered.")
	fs.StringVar(&o.CertSecret, "serving-cert-secret", o.CertSecret, ""+
		"Secret of the cluster, NAMESPACE/NAME, in which the server keeps a serving certificate that it creates, renews and "+
		"shares with its replicas. The server writes its CA into caBundle of the APIService "+apiServiceName+". "+
		"Cannot be used with --tls-cert-file.")
	fs.StringVar(&o.CertService, "serving-cert-service", o.CertService, ""+
		"Service of the cluster, NAMESPACE/NAME, that the certificate in --serving-cert-secret is for.")
	fs.DurationVar(&o.CertLifetime, "serving-cert-lifetime", o.CertLifetime, ""+
		"Validity of a certificate in --serving-cert-secret. The server creates the next one after 60% of it, and replaces one that is valid for longer.")
}

const apiServiceName = "v1." + v1.GroupName

func (o *Options) validateInCluster() []error {
	if o.CoreAPI.CoreAPIKubeconfigPath == "" {
		if _, err := rest.InClusterConfig(); err != nil {
			// Other errors would distract from this one.
			return []error{fmt.Errorf("pass --standalone to run without a cluster, or --kubeconfig=FILE to run behind a cluster's kube-apiserver (%w)", err)}
		}
	}
	errs := slices.Clone(o.ignored)
	if o.Cluster.Namespaces.Couple && len(o.Cluster.Namespaces.Controllers) == 0 {
		errs = append(errs, errors.New("--couple-cluster-namespaces needs --cluster-namespace-controllers"))
	}
	if o.Cluster.CertSecret == "" {
		return errs
	}
	if _, err := flags.NamespacedName("serving-cert-secret", o.Cluster.CertSecret); err != nil {
		errs = append(errs, err)
	}
	if _, err := flags.NamespacedName("serving-cert-service", o.Cluster.CertService); err != nil {
		errs = append(errs, err)
	}
	if err := flags.CheckCertLifetime("serving-cert-lifetime", o.Cluster.CertLifetime); err != nil {
		errs = append(errs, err)
	}
	if pair := o.SecureServing.ServerCert.CertKey; pair.CertFile != "" || pair.KeyFile != "" {
		errs = append(errs, errors.New("--serving-cert-secret and --tls-cert-file cannot be used together"))
	}
	return errs
}

// applyInCluster configures authentication and authorization of a server behind a
// cluster's kube-apiserver. It delegates both to kube-apiserver. The projects may be nil.
func (o *Options) applyInCluster(generic *genericapiserver.RecommendedConfig, cluster *kubeconfigs, projects *apiserver.ClusterProjects) error {
	if err := cluster.applyTo(generic); err != nil {
		return fmt.Errorf("create the client for the cluster: %w", err)
	}
	authenticator, err := o.newAuthenticator(cluster.authentication)
	if err != nil {
		return err
	}
	o.applyAuthenticator(generic, authenticator)
	if err := startWithCluster(generic, authenticator); err != nil {
		return err
	}
	if err := o.applyAuthorization(&generic.Authorization, cluster.authorization); err != nil {
		return err
	}
	if projects != nil {
		if projects.Client, err = kubernetes.NewForConfig(generic.ClientConfig); err != nil {
			return fmt.Errorf("create the client for the RBAC objects of the cluster: %w", err)
		}
	}
	return nil
}

// applyAuthorization does what Authorization.ApplyTo does, which allows all users
// together 200 SubjectAccessReviews per second.
func (o *Options) applyAuthorization(authorization *genericapiserver.AuthorizationInfo, cluster *rest.Config) (err error) {
	authorization.Authorizer, err = delegation.AuthorizerConfig{
		Cluster:       cluster,
		AllowTTL:      o.Authorization.AllowCacheTTL,
		DenyTTL:       o.Authorization.DenyCacheTTL,
		Backoff:       *o.Authorization.WebhookRetryBackoff,
		Timeout:       o.Authorization.ClientTimeout,
		AllowedGroups: o.Authorization.AlwaysAllowGroups,
		AllowedPaths:  o.Authorization.AlwaysAllowPaths,
		Broad:         o.Cluster.BroadReviews,
	}.NewAuthorizer()
	return err
}

// newClusterProjects returns what serves projects, whose client applyInCluster sets.
func newClusterProjects(config *storage.Config) *apiserver.ClusterProjects {
	views := visibility.NewMerged(rbac.NewIndex(nil))
	config.Feed, config.Followed = views.Feed(), visibility.MergedResources()
	return &apiserver.ClusterProjects{Views: views}
}

// newRotator returns the rotator of the serving certificate, which the server runs.
func (o *Options) newRotator(cluster *rest.Config) (*servingcert.Rotator, error) {
	secret, err := flags.NamespacedName("serving-cert-secret", o.Cluster.CertSecret)
	if err != nil {
		return nil, err
	}
	service, err := flags.NamespacedName("serving-cert-service", o.Cluster.CertService)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("create the client for the cluster: %w", err)
	}
	dynamic, err := dynamic.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("create the dynamic client for the cluster: %w", err)
	}
	name := service.Name + "." + service.Namespace + ".svc"
	return servingcert.NewRotator(servingcert.Config{
		Secret:     secret,
		APIService: apiServiceName,
		Hosts:      []string{name, name + ".cluster.local"},
		Lifetime:   o.Cluster.CertLifetime,
	}, client, dynamic)
}
