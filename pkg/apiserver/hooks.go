// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/registry/create"
)

// work begins when the server starts to serve.
type work struct {
	// name is that of the check of readiness.
	name string
	// do returns when the server may be ready, or the context has ended.
	do func(context.Context)
	// direct is whether do reads from etcd itself, and need not wait for the watch caches.
	direct bool
}

func (c *ExtraConfig) work() []work {
	return []work{
		{name: "tenancy-informers", do: func(ctx context.Context) {
			c.Informers.Start(ctx.Done())
			c.Informers.WaitForCacheSync(ctx.Done())
		}},
		{name: "default-namespace", do: func(ctx context.Context) {
			awaitAttempt(ctx, func(attempted func()) { ensureDefaultNamespace(ctx, c.Client, attempted) })
		}},
	}
}

// awaitAttempt runs work that retries until it succeeds, and waits for its first
// attempt.
func awaitAttempt(ctx context.Context, work func(attempted func())) {
	done, attempted := context.WithCancel(ctx)
	go work(attempted)
	<-done.Done()
}

// addHooks adds the work that begins when the server starts to serve, and checks of
// its readiness that fail until it is done. The work is done in the background,
// because a hook that does not return is also a failed check of liveness: the kubelet
// would restart a server that waits for etcd. When all of it is done, after runs, which
// may be nil.
func addHooks(server *genericapiserver.GenericAPIServer, groups []apiGroup, works []work, after func(context.Context)) error {
	var stores []rest.StorageWithReadiness
	for _, group := range groups {
		for _, resource := range group.resources {
			if store, ok := resource.(rest.StorageWithReadiness); ok {
				stores = append(stores, store)
			}
		}
	}
	var ends []<-chan struct{}
	for _, work := range works {
		done := make(chan struct{})
		ends = append(ends, done)
		err := server.AddPostStartHook("start-"+work.name, func(hook genericapiserver.PostStartHookContext) error {
			go func() {
				if work.direct || awaitStores(hook.Context, stores) == nil {
					work.do(hook.Context)
					close(done)
				}
			}()
			return nil
		})
		if err != nil {
			return fmt.Errorf("add the hook %s: %w", work.name, err)
		}
		err = server.AddReadyzChecks(healthz.NamedCheck(work.name, func(*http.Request) error {
			select {
			case <-done:
				return nil
			default:
				return errors.New("not finished")
			}
		}))
		if err != nil {
			return fmt.Errorf("add the check %s: %w", work.name, err)
		}
	}
	if after == nil {
		return nil
	}
	err := server.AddPostStartHook("after-start", func(hook genericapiserver.PostStartHookContext) error {
		go func() {
			for _, done := range ends {
				select {
				case <-done:
				case <-hook.Done():
					return
				}
			}
			after(hook.Context)
		}()
		return nil
	})
	if err != nil {
		return fmt.Errorf("add the hook after-start: %w", err)
	}
	return nil
}

// awaitStores waits until the watch caches are filled, which wait for etcd. Requests
// before that would fail, and informers would wait longer and longer to repeat them.
func awaitStores(ctx context.Context, stores []rest.StorageWithReadiness) error {
	return wait.PollUntilContextCancel(ctx, storesInterval, true, func(context.Context) (bool, error) {
		for _, store := range stores {
			if store.ReadinessCheck() != nil {
				return false, nil
			}
		}
		return true, nil
	})
}

// storesInterval is how often awaitStores checks.
const storesInterval = 20 * time.Millisecond

// How long an attempt to create a Namespace may take. A server that starts waits
// for the first one.
const (
	firstAttemptTimeout = 2 * time.Second
	attemptTimeout      = 30 * time.Second
)

// ensureDefaultNamespace creates the Namespace default if it does not exist. It retries
// until it succeeds or the server stops, because etcd may be unavailable. It calls
// attempted once the Namespace exists, or the first attempt to create it has failed: a
// policy or a webhook of the cluster may reject it, and the server must become ready all
// the same.
func ensureDefaultNamespace(ctx context.Context, client versioned.Interface, attempted func()) {
	const name = metav1.NamespaceDefault
	defer attempted()
	namespaces := client.TenancyV1().Namespaces()
	timeout := firstAttemptTimeout
	delay := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 12, Cap: time.Minute}.DelayFunc()
	_ = delay.Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		_, err := namespaces.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			attempt, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			_, err = namespaces.Create(attempt, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{FieldManager: create.ServerManager})
			timeout = attemptTimeout
			attempted()
		}
		// One that cannot be read exists. It does not affect readiness.
		if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsStoreReadError(err) {
			return true, nil
		}
		klog.FromContext(ctx).Info("Failed to create the default Namespace, will retry", "namespace", name, "err", err)
		return false, nil
	})
}
