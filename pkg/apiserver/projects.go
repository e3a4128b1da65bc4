// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/authorization/clusterpolicy"
	"github.com/borough-io/borough/pkg/visibility"
)

// ClusterProjects is what a server needs to serve projects in a cluster.
type ClusterProjects struct {
	// Views are the Namespaces that users see.
	Views *visibility.Merged
	// Client is a client of the cluster that may read its policy.
	Client kubernetes.Interface
}

// work returns the work of a server that serves projects. Requests that are in flight wait for
// the feed until drained is closed.
func (p *ClusterProjects) work(drained <-chan struct{}) []work {
	// The server is ready without it: nothing but projects depends on the policy.
	return []work{{name: "projects", do: func(ctx context.Context) {
		go p.run(klog.NewContext(wait.ContextForChannel(drained), klog.FromContext(ctx)))
	}}}
}

// run follows the policy of the cluster, and then the Namespaces.
func (p *ClusterProjects) run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	if err := clusterpolicy.Follow(ctx, p.Client, p.Views.SetPolicy); err != nil {
		if ctx.Err() == nil {
			logger.Error(err, "Cannot watch the RBAC objects of the cluster, so projects cannot be read")
		}
		return
	}
	if err := p.Views.Feed().Run(ctx); err != nil && ctx.Err() == nil {
		logger.Error(err, "Cannot watch the Namespaces, so projects cannot be read")
	}
}
