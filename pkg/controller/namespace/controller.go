// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/controller/namespace/deletion"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
	tenancyinformers "github.com/borough-io/borough/pkg/generated/informers/externalversions/tenancy/v1"
	tenancylisters "github.com/borough-io/borough/pkg/generated/listers/tenancy/v1"
)

const (
	// retryBaseDelay and retryMaxDelay bound the backoff of a Namespace that
	// did not get through. It doubles from one to the other.
	retryBaseDelay = 100 * time.Millisecond
	retryMaxDelay  = 30 * time.Second
)

// Controller purges the Namespaces that are being deleted.
type Controller struct {
	informer tenancyinformers.NamespaceIndexInformer
	lister   tenancylisters.NamespaceLister
	// purge makes one pass over a Namespace; see deletion.Deleter.Delete.
	purge func(ctx context.Context, ns *v1.Namespace, since time.Time) error

	// queue has the Namespaces to process for the first time or because they made
	// progress, retryQueue those that were not finished then. A Namespace with
	// retries belongs to retryQueue.
	queue      workqueue.TypedInterface[string]
	retryQueue workqueue.TypedRateLimitingInterface[string]
	// working has the Namespaces that a worker of either queue is at.
	working keySet

	terminations *terminations
	watches      *contentWatches
	metrics      *controllerMetrics
}

// New returns a Controller for the server that config reaches, which purges the
// kinds of the given API groups (see deletion.NewDiscoverer). Its metrics are
// registered with the registry.
func New(config *rest.Config, purgeGroups []string, registry metrics.KubeRegistry) (*Controller, error) {
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	inJSON := rest.CopyConfig(config)
	inJSON.ContentType = runtime.ContentTypeJSON
	deletionClient, err := tenancyv1.NewForConfig(inJSON)
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
	return newController(client, deletionClient, content, deletion.NewDiscoverer(discoverer, purgeGroups...).Discover, registry)
}

func newController(client versioned.Interface, deletionClient deletion.Client, content metadata.Interface, discover deletion.DiscoverFunc, registry metrics.KubeRegistry) (*Controller, error) {
	c := &Controller{
		// The server picks out the terminating Namespaces: the others, however
		// many, cost neither memory nor traffic here.
		informer: tenancyinformers.NewTypedFilteredNamespaceInformer(client, 0, nil, func(opts *metav1.ListOptions) {
			opts.FieldSelector = fields.OneTermEqualSelector("status.phase", string(v1.NamespaceTerminating)).String()
		}),
		queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "namespace"}),
		retryQueue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryBaseDelay, retryMaxDelay),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "namespace_retry"},
		),
		terminations: newTerminations(),
	}
	c.lister = tenancylisters.NewNamespaceLister(c.informer.GetIndexer())
	c.metrics = newControllerMetrics(c.terminations, registry)
	c.watches = newContentWatches(content, c.wake, c.terminations.moved, c.metrics.countPurged)
	deleter := deletion.New(deletionClient, content, discover, c.metrics.countPurged)
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
// over at once.
func (c *Controller) RunInformer(ctx context.Context) {
	c.informer.RunWithContext(ctx)
}

// RunWorkers purges Namespaces until the context ends, and returns when
// everything that it started has ended. That many Namespaces are worked on at
// once for the first time, and as many again that did not get through then. It
// can be called once.
func (c *Controller) RunWorkers(ctx context.Context, workers int) {
	defer utilruntime.HandleCrashWithContext(ctx)
	logger := klog.FromContext(ctx)
	logger.Info("Starting the namespace controller", "workers", workers)
	defer logger.Info("The namespace controller has ended")

	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for c.nextFresh(ctx) {
			}
		})
		wg.Go(func() {
			for c.nextAgain(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	c.retryQueue.ShutDown()
	wg.Wait()
	c.watches.wait()
}

func (c *Controller) nextFresh(ctx context.Context) bool {
	key, quit := c.queue.Get()
	if quit {
		return false
	}
	defer c.queue.Done(key)
	if c.retryQueue.NumRequeues(key) > 0 || !c.working.add(key) {
		// It has its place in the other queue, where it waits for the worker
		// that may be at it.
		c.retryQueue.Add(key)
		return true
	}
	defer c.working.remove(key)
	c.process(ctx, key, c.terminations.seen(key))
	return true
}

func (c *Controller) nextAgain(ctx context.Context) bool {
	key, quit := c.retryQueue.Get()
	if quit {
		return false
	}
	defer c.retryQueue.Done(key)
	if !c.working.add(key) {
		c.queue.Add(key)
		return true
	}
	defer c.working.remove(key)
	// What failed may have failed for a kind that was not known.
	c.process(ctx, key, time.Now())
	return true
}

// process makes one pass over a Namespace, and adds it to a queue if it needs
// another one. Discovery must be newer than since.
func (c *Controller) process(ctx context.Context, key string, since time.Time) {
	ns, err := c.lister.Get(key)
	if apierrors.IsNotFound(err) {
		c.done(key)
		return
	}
	logger := klog.FromContext(ctx).WithValues("namespace", key, "uid", ns.UID)
	ctx = klog.NewContext(ctx, logger)

	start := time.Now()
	err = c.purge(ctx, ns, since)
	logger.V(4).Info("Made a pass over the namespace", "duration", time.Since(start), "outcome", err)
	if err == nil {
		c.done(key)
		return
	}
	if ctx.Err() != nil {
		return
	}
	var remaining *deletion.ContentRemainingError
	waiting := errors.As(err, &remaining)
	if waiting {
		c.watches.keep(ctx, key, ns.UID, remaining.Content)
	}
	if waiting && remaining.Failure == nil {
		c.terminations.stuck(key, ns.UID, stuckOnContent)
		logger.V(2).Info("The namespace waits for its content", "content", remaining.Error())
	} else {
		c.terminations.stuck(key, ns.UID, stuckOnFailure)
		logger.Error(err, "Could not purge the namespace, will try again")
	}
	c.retryQueue.AddRateLimited(key)
}

// done forgets what was kept for another pass.
func (c *Controller) done(key string) {
	c.retryQueue.Forget(key)
	c.watches.stop(key)
}

// wake has a Namespace worked on at once because its content changed in a way
// that matters. It is not stuck then, so it does not queue up with those that
// are.
func (c *Controller) wake(key string) {
	c.retryQueue.Forget(key)
	c.queue.Add(key)
}

func (c *Controller) observe(ns *v1.Namespace, initial bool) {
	if ns.DeletionTimestamp.IsZero() {
		return
	}
	c.terminations.observe(ns, initial)
	c.queue.Add(ns.Name)
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

// keySet is a set of keys that may be used by several goroutines.
type keySet struct {
	mu   sync.Mutex
	keys map[string]struct{}
}

// add adds a key and reports whether it was not in the set.
func (s *keySet) add(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.keys[key]; ok {
		return false
	}
	if s.keys == nil {
		s.keys = map[string]struct{}{}
	}
	s.keys[key] = struct{}{}
	return true
}

func (s *keySet) remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, key)
}
