// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
)

// addHooks adds the hooks that run when the server starts to serve. It is ready when
// they are done. A hook that fails ends the process, so a hook that was stopped
// returns no error.
func addHooks(server *genericapiserver.GenericAPIServer, c *ExtraConfig) error {
	hooks := map[string]genericapiserver.PostStartHookFunc{
		"start-tenancy-informers": func(hook genericapiserver.PostStartHookContext) error {
			c.Informers.Start(hook.Done())
			c.Informers.WaitForCacheSync(hook.Done())
			return nil
		},
		"create-default-namespace": func(hook genericapiserver.PostStartHookContext) error {
			ensureNamespace(hook.Context, c.Client, metav1.NamespaceDefault)
			return nil
		},
	}
	for name, hook := range hooks {
		if err := server.AddPostStartHook(name, hook); err != nil {
			return fmt.Errorf("add the hook %s: %w", name, err)
		}
	}
	return nil
}

// ensureNamespace creates a Namespace if it does not exist. It retries until it
// succeeds or the server stops, because etcd may be unavailable when a server
// starts.
func ensureNamespace(ctx context.Context, client versioned.Interface, name string) {
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	delay := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 8, Cap: 5 * time.Second}.DelayFunc()
	_ = delay.Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		_, err := client.TenancyV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			return true, nil
		}
		klog.FromContext(ctx).Info("Failed to create a Namespace that always exists, will retry", "namespace", name, "reason", err)
		return false, nil
	})
}
