// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// AwaitAPI waits until the cluster serves Borough's API: until the APIService
// is available, and discovery and OpenAPI include the API.
func (b *Borough) AwaitAPI(ctx context.Context) error { return b.cluster.AwaitAPI(ctx) }

// AwaitAPI does what that of Borough does, however Borough was deployed.
func (c *Cluster) AwaitAPI(ctx context.Context) error {
	config := c.AdminConfig()
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make a discovery client: %w", err)
	}
	gv := v1.SchemeGroupVersion
	err = poll.Until(ctx, startTimeout, func(ctx context.Context) error {
		if err := available(ctx, config, "/apis/apiregistration.k8s.io/v1/apiservices/"+gv.Version+"."+gv.Group); err != nil {
			return err
		}
		for _, path := range []string{"/apis/", "/openapi/v3/apis/"} {
			if err := harness.GetOK(ctx, config, path+gv.String(), nil); err != nil {
				return err
			}
		}
		_, lists, err := discoverer.ServerGroupsAndResourcesWithContext(ctx)
		if err != nil {
			return fmt.Errorf("discover what the cluster serves: %w", err)
		}
		if !slices.ContainsFunc(lists, func(list *metav1.APIResourceList) bool { return list.GroupVersion == gv.String() }) {
			return fmt.Errorf("the cluster's discovery does not have %s yet", gv)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("wait for the cluster to serve %s: %w", gv, err)
	}
	return nil
}

// available returns an error with the aggregator's reason unless the APIService
// is available.
func available(ctx context.Context, config *rest.Config, path string) error {
	var apiService struct {
		Status struct{ Conditions []metav1.Condition }
	}
	if err := harness.GetOK(ctx, config, path, &apiService); err != nil {
		return err
	}
	for _, condition := range apiService.Status.Conditions {
		if condition.Type != "Available" {
			continue
		}
		if condition.Status == metav1.ConditionTrue {
			return nil
		}
		return fmt.Errorf("the APIService is not available: %s: %s", condition.Reason, condition.Message)
	}
	return errors.New("the aggregator has not looked at the APIService yet")
}
