// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterplugins

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/spec3"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// WithModels returns a client whose OpenAPI documents are those of this server instead of
// those of the cluster. A MutatingAdmissionPolicy is applied by the OpenAPI model of an object,
// and kube-apiserver has that of ours only some seconds after it or this server has started.
func WithModels(cluster kubernetes.Interface, config *common.OpenAPIV3Config) kubernetes.Interface {
	// When a policy is applied for the first time, at which there can be many requests.
	encode := sync.OnceValues(func() ([]byte, error) {
		own := *config
		own.Definitions = nil // made again, because building changes them, and others read them
		names := slices.Sorted(maps.Keys(config.Definitions))
		models, err := builder3.BuildOpenAPIDefinitionsForResources(&own, names...)
		if err != nil {
			return nil, fmt.Errorf("build the OpenAPI models: %w", err)
		}
		return json.Marshal(&spec3.OpenAPI{Components: &spec3.Components{Schemas: models}})
	})
	return modelsClient{cluster, document{encode}}
}

type modelsClient struct {
	kubernetes.Interface
	document document
}

func (c modelsClient) Discovery() discovery.DiscoveryInterfaces {
	return modelsDiscovery{c.Interface.Discovery(), c.document}
}

type modelsDiscovery struct {
	discovery.DiscoveryInterfaces
	document document
}

func (d modelsDiscovery) OpenAPIV3() openapi.Client { return d.document }

func (d modelsDiscovery) OpenAPIV3WithContext(context.Context) openapi.ClientWithContext {
	return openapi.ToClientWithContext(d.document)
}

// document is the OpenAPI document with the models of all kinds of our group.
type document struct{ encode func() ([]byte, error) }

// Paths implements openapi.Client.
func (d document) Paths() (map[string]openapi.GroupVersion, error) {
	return map[string]openapi.GroupVersion{"apis/" + v1.SchemeGroupVersion.String(): d}, nil
}

// Schema implements openapi.GroupVersion.
func (d document) Schema(string) ([]byte, error) { return d.encode() }

// ServerRelativeURL implements openapi.GroupVersion. Plugins keep what they have read from
// the same URL.
func (d document) ServerRelativeURL() string { return "" }
