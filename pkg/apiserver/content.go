// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/create"
	"github.com/borough-io/borough/pkg/registry/rbac"
	"github.com/borough-io/borough/pkg/registry/standard"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace/content"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespacetemplate"
)

// newCreateConfig returns how the server creates Namespaces and their content for users.
func (c *ExtraConfig) newCreateConfig(generic *genericapiserver.Config) (create.Config, error) {
	kinds := []runtime.Object{&v1.Namespace{}, &v1.LimitRange{}, &v1.ResourceQuota{}}
	if c.Standalone != nil {
		kinds = append(kinds, &rbacv1.RoleBinding{})
	}
	types, err := create.NewTypes(generic.OpenAPIV3Config, kinds...)
	return create.Config{Scheme: c.Scheme, Admission: generic.AdmissionControl, Types: types}, err
}

// newTemplates returns the storage of namespacetemplates.
func (c *ExtraConfig) newTemplates(rights rbac.Storage) (*namespacetemplate.REST, error) {
	resource := tenancy.Resource("namespacetemplates")
	prefix, err := c.Storage.ConditionPrefix(resource)
	if err != nil {
		return nil, err
	}
	config := namespacetemplate.Config{
		Scheme:      c.Scheme,
		RESTOptions: c.Storage,
		Prefix:      prefix,
		Unreadable:  func() []string { return c.Unreadable.In(resource, "") },
	}
	if c.Standalone != nil {
		config.Rights = rights
	}
	return namespacetemplate.NewREST(config)
}

// newContent returns what creates the content of new Namespaces. The RoleBindings are nil
// unless standalone.
func (c *ExtraConfig) newContent(config create.Config, source content.Source, limitRanges, quotas *standard.REST, roleBindings *rbac.REST) (*content.Creator, error) {
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
