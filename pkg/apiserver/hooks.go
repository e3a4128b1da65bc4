// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"sync"
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
			attempted := make(chan struct{})
			go ensureNamespace(hook.Context, c.Client, metav1.NamespaceDefault, sync.OnceFunc(func() { close(attempted) }))
			select {
			case <-attempted:
			case <-hook.Done():
			}
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

// How long an attempt to create a Namespace may take. A server that starts waits
// for the first one.
const (
	firstAttemptTimeout = 2 * time.Second
	attemptTimeout      = 30 * time.Second
)

// ensureNamespace creates a Namespace if it does not exist. It retries until it
// succeeds or the server stops, because etcd may be unavailable when a server
// starts. It calls attempted once the Namespace exists, or the first attempt to
// create it has failed: a policy or a webhook of the cluster may reject it, and
// the server must become ready all the same.
func ensureNamespace(ctx context.Context, client versioned.Interface, name string, attempted func()) {
	defer attempted()
	namespaces := client.TenancyV1().Namespaces()
	timeout := firstAttemptTimeout
	delay := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 8, Cap: 5 * time.Second}.DelayFunc()
	_ = delay.Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		_, err := namespaces.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			attempt, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			_, err = namespaces.Create(attempt, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			timeout = attemptTimeout
			attempted()
		}
		if err == nil || apierrors.IsAlreadyExists(err) {
			return true, nil
		}
		klog.FromContext(ctx).Info("Failed to create a Namespace that always exists, will retry", "namespace", name, "reason", err)
		return false, nil
	})
}
