// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/util"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/poster"
	"github.com/borough-io/borough/pkg/registry/rbac"
	"github.com/borough-io/borough/pkg/registry/standard"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace/content"
	templates "github.com/borough-io/borough/pkg/registry/tenancy/namespacetemplate/storage"
)

// newPosterConfig returns how the server creates Namespaces and their content for users.
func (c *ExtraConfig) newPosterConfig(generic *genericapiserver.Config) (poster.Config, error) {
	kinds := []string{
		util.GetCanonicalTypeName(&v1.Namespace{}),
		util.GetCanonicalTypeName(&v1.LimitRange{}),
		util.GetCanonicalTypeName(&v1.ResourceQuota{}),
	}
	if c.Standalone != nil {
		kinds = append(kinds, util.GetCanonicalTypeName(&rbacv1.RoleBinding{}))
	}
	models, err := builder3.BuildOpenAPIDefinitionsForResources(generic.OpenAPIV3Config, kinds...)
	if err != nil {
		return poster.Config{}, fmt.Errorf("build the OpenAPI models of namespaces and their content: %w", err)
	}
	types, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		return poster.Config{}, fmt.Errorf("read the OpenAPI models of namespaces and their content: %w", err)
	}
	return poster.Config{Scheme: c.Scheme, Admission: generic.AdmissionControl, Types: types}, nil
}

// newTemplates returns the storage of namespacetemplates.
func (c *ExtraConfig) newTemplates(rights rbac.Storage) (*templates.REST, error) {
	config := templates.Config{
		Scheme:      c.Scheme,
		RESTOptions: c.Storage,
		Prefixes:    c.Storage,
		Unreadable:  func() []string { return c.Unreadable.In(tenancy.Resource("namespacetemplates"), "") },
	}
	if c.Standalone != nil {
		config.Rights = rights
	}
	return templates.NewREST(config)
}

// newContent returns what creates the content of new Namespaces. The RoleBindings are nil
// unless standalone.
func (c *ExtraConfig) newContent(config poster.Config, source content.Source, limitRanges, quotas *standard.REST, roleBindings *rbac.REST) (*content.Creator, error) {
	storage := content.Storage{LimitRanges: limitRanges, ResourceQuotas: quotas}
	if roleBindings != nil {
		// The store, unlike its REST, does not require that the user holds the rights.
		storage.RoleBindings = roleBindings.Store
	}
	if c.Standalone != nil && c.Standalone.DefaultLimits {
		source = content.WithDefaultLimits(source)
	}
	return content.NewCreator(config, source, storage)
}
