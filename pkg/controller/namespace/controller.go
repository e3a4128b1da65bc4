// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/controller/namespace/purge"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
	tenancyinformers "github.com/borough-io/borough/pkg/generated/informers/externalversions/tenancy/v1"
	tenancylisters "github.com/borough-io/borough/pkg/generated/listers/tenancy/v1"
)

const (
	// retryBaseDelay and retryMaxDelay bound the backoff of a Namespace whose
	// pass failed or left content. The delay doubles from the first to the second.
	retryBaseDelay = 100 * time.Millisecond
	retryMaxDelay  = 30 * time.Second
	// firstPassTimeout is how long a first pass may keep a worker from other first
	// passes. Most passes take milliseconds.
	firstPassTimeout = time.Second
)

// errTimeSlice is why a first pass was canceled.
var errTimeSlice = fmt.Errorf("the pass ended after %s, so that other namespaces do not wait", firstPassTimeout)

// Controller purges the Namespaces that are being deleted.
type Controller struct {
	informer tenancyinformers.NamespaceIndexInformer
	lister   tenancylisters.NamespaceLister
	// purge makes one pass over a Namespace; see purge.Deleter.Delete.
	purge func(ctx context.Context, ns *v1.Namespace, since time.Time) error

	queue workqueue.TypedRateLimitingInterface[string]
	// working is whether RunWorkers has started. Before, nothing takes a key out of the
	// queue, so none is added.
	working atomic.Bool
	// slots are for retries, and for first passes that take long.
	slots *slots

	terminations *terminations
	watches      *contentWatches
	metrics      *controllerMetrics
}

// New returns a Controller for the server that config reaches, which purges the
// kinds of the given API groups (see purge.NewDiscoverer). Its metrics are
// registered with the registry.
func New(config *rest.Config, purgeGroups []string, registry metrics.KubeRegistry) (*Controller, error) {
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	inJSON := rest.CopyConfig(config)
	inJSON.ContentType = runtime.ContentTypeJSON
	purgeClient, err := tenancyv1.NewForConfig(inJSON)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	content, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	informerClient := versioned.New(sendOnce{client.TenancyV1().RESTClient()})
	return newController(informerClient, purgeClient, content, purge.NewDiscoverer(discoverer, purgeGroups...).Discover, registry)
}

func newController(client versioned.Interface, purgeClient purge.Client, content metadata.Interface, discover purge.DiscoverFunc, registry metrics.KubeRegistry) (*Controller, error) {
	api := &availability{}
	c := &Controller{
		informer: newInformer(client, api),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryBaseDelay, retryMaxDelay),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "namespace"},
		),
		terminations: newTerminations(),
	}
	c.lister = tenancylisters.NewNamespaceLister(c.informer.GetIndexer())
	c.metrics = newControllerMetrics(c.terminations, api, registry)
	c.watches = newContentWatches(content, c.wake, c.terminations.moved, c.metrics.countPurged)
	deleter := purge.New(purgeClient, content, discover, c.metrics.countPurged)
	c.purge = func(ctx context.Context, ns *v1.Namespace, since time.Time) error {
		return deleter.Delete(ctx, ns, since, c.terminations.progress(ns.Name, ns.UID))
	}

	if err := c.informer.SetTransform(dropManagedFields); err != nil {
		return nil, fmt.Errorf("set up the namespace informer: %w", err)
	}
	_, err := c.informer.AddTypedEventHandler(tenancyinformers.NamespaceDetailedHandlerFuncs{
		AddFunc: func(ns *v1.Namespace, initial bool) { c.observe(ns, initial) },
		UpdateFunc: func(old, ns *v1.Namespace) {
			switch {
			case old.UID != ns.UID:
				c.observeGone(old.Name)
			case !old.DeletionTimestamp.IsZero() &&
				slices.Equal(old.Spec.Finalizers, ns.Spec.Finalizers) && slices.Equal(old.Finalizers, ns.Finalizers):
				return // only the status has changed, most likely by this controller
			}
			c.observe(ns, false)
		},
		DeleteFunc: func(deleted tenancyinformers.DeletedNamespace) { c.observeGone(deleted.GetObjectName().Name) },
	})
	if err != nil {
		return nil, fmt.Errorf("set up the namespace informer: %w", err)
	}
	return c, nil
}

// HasSynced reports whether all Namespaces that were Terminating at the start are in
// the cache.
func (c *Controller) HasSynced() bool { return c.informer.HasSynced() }

// RunInformer keeps the Namespaces up to date until the context ends. It is
// apart from RunWorkers so that a replica that does not lead is ready to take
// over at once. It has to be called, also if RunWorkers is not: it ends the queue.
func (c *Controller) RunInformer(ctx context.Context) {
	defer c.queue.ShutDown()
	c.informer.RunWithContext(ctx)
}

// RunWorkers purges Namespaces until the context ends, and returns when everything that
// it started has ended, except for a request for discovery. There are two workers for
// each of the given number, and that many slots: the other half of the workers is free
// for first passes, regardless of what the slots are used for. It can be called once.
func (c *Controller) RunWorkers(ctx context.Context, workers int) {
	defer utilruntime.HandleCrashWithContext(ctx)
	logger := klog.FromContext(ctx)
	logger.Info("Starting the namespace controller", "workers", workers)
	defer logger.Info("The namespace controller has ended")

	c.slots = newSlots(workers)
	// A Namespace is in the cache before it is observed, so none is missed.
	c.working.Store(true)
	for _, key := range c.informer.GetIndexer().ListKeys() {
		c.queue.Add(key)
	}
	var wg sync.WaitGroup
	for range 2 * workers {
		wg.Go(func() {
			for c.processNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	wg.Wait()
	c.watches.wait()
}

// processNext makes a pass over the next Namespace of the queue. It returns false
// when the queue is shut down, or the context has ended: the queue still returns what is in it.
func (c *Controller) processNext(ctx context.Context) bool {
	key, quit := c.queue.Get()
	if quit {
		return false
	}
	defer c.queue.Done(key)
	if ctx.Err() != nil {
		return false
	}
	requeues := c.queue.NumRequeues(key)
	switch {
	case requeues == 0:
		c.processFirst(ctx, key)
	case c.slots.acquire(key, requeues == 1):
		c.process(ctx, ctx, key, true)
		c.slots.release()
	default:
		return true
	}
	if waiting, ok := c.slots.next(); ok {
		c.queue.Add(waiting)
	}
	return true
}

// processFirst makes a pass over a Namespace that is not a retry. A pass that takes
// longer than firstPassTimeout continues in a slot. If none is free, it is canceled
// and retried: it then waits for other first retries, but not for all that hang.
func (c *Controller) processFirst(ctx context.Context, key string) {
	passCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	acquired := make(chan bool, 1)
	timer := time.AfterFunc(firstPassTimeout, func() {
		ok := c.slots.tryAcquire()
		if !ok {
			cancel(errTimeSlice)
		}
		acquired <- ok
	})
	c.process(ctx, passCtx, key, false)
	if !timer.Stop() && <-acquired {
		c.slots.release()
	}
}

// process makes one pass over a Namespace, within passCtx, and adds it to the queue
// if it needs another one.
func (c *Controller) process(ctx, passCtx context.Context, key string, retry bool) {
	ns, err := c.lister.Get(key)
	if apierrors.IsNotFound(err) {
		c.done(key)
		return
	}
	logger := klog.FromContext(ctx).WithValues("namespace", key, "uid", ns.UID)
	ctx = klog.NewContext(ctx, logger)

	start := time.Now()
	since := start // what failed may have failed for a kind that was not known
	if !retry {
		since = c.terminations.seen(key, ns.UID)
	}
	err = c.purge(klog.NewContext(passCtx, logger), ns, since)
	logger.V(4).Info("Made a pass over the namespace", "duration", time.Since(start), "err", err)
	if err == nil {
		reason := ""
		if !slices.Contains(ns.Spec.Finalizers, v1.FinalizerKubernetes) {
			reason = stuckOnFinalizers
		}
		c.terminations.stuck(key, ns.UID, reason)
		c.done(key)
		return
	}
	if ctx.Err() != nil {
		return
	}
	if passCtx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(passCtx), err)
	}
	var remaining *purge.ContentRemainingError
	waiting := errors.As(err, &remaining)
	if waiting {
		c.watches.keep(ctx, key, ns.UID, c.queue.NumRequeues(key), remaining.Content)
	}
	switch {
	case waiting && remaining.Failure == nil:
		c.terminations.stuck(key, ns.UID, stuckOnContent)
		logger.V(2).Info("The namespace waits for its content", "content", remaining.Error())
	case errors.Is(err, errTimeSlice): // not a failure
		logger.V(2).Info("The pass over the namespace continues later", "err", err)
	default:
		c.terminations.stuck(key, ns.UID, stuckOnFailure)
		logger.Error(err, "Could not purge the namespace, will try again")
	}
	c.queue.AddRateLimited(key)
}

// done forgets what was kept for another pass.
func (c *Controller) done(key string) {
	c.queue.Forget(key)
	c.watches.stop(key)
}

// wake has a Namespace worked on at once because its content changed in a way
// that matters. If the content is gone, that is not a retry, so it does not wait for
// a slot. Tenants can change finalizers again and again, so that remains a retry.
func (c *Controller) wake(key string, gone bool) {
	if gone {
		c.queue.Forget(key)
	}
	c.queue.Add(key)
}

func (c *Controller) observe(ns *v1.Namespace, initial bool) {
	if ns.DeletionTimestamp.IsZero() {
		return
	}
	c.terminations.observe(ns, initial)
	if c.working.Load() {
		c.queue.Add(ns.Name)
	}
}

func (c *Controller) observeGone(key string) {
	if duration, ok := c.terminations.end(key); ok {
		c.metrics.terminationDuration.Observe(duration.Seconds())
	}
	c.done(key)
}

// dropManagedFields saves the memory of what is not read. An update without
// them leaves them as they are.
func dropManagedFields(obj any) (any, error) {
	if ns, ok := obj.(*v1.Namespace); ok {
		ns.ManagedFields = nil
	}
	return obj, nil
}
