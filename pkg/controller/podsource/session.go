// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	"github.com/borough-io/borough/pkg/source"
)

const (
	// workers is the number of Pods that are written concurrently.
	workers = 10
	// retryBaseDelay and retryMaxDelay bound the backoff of a write that failed.
	retryBaseDelay = 100 * time.Millisecond
	retryMaxDelay  = 30 * time.Second
	// reportedAttempts is the number of attempts, in about three seconds, after which the error
	// of a write is shown, although it is tried again.
	reportedAttempts = 6
	// refusedRetryPeriod is the time between retries of the writes that were refused.
	refusedRetryPeriod = 5 * time.Minute
	// limitsDelay is how long after the event of a change of limits a server may still
	// refuse by the limits from before. Refused writes that began until then are tried again.
	limitsDelay = time.Second
	// statusKey is in the queue when the status is to be published. It is not the name of
	// a Pod.
	statusKey = ""
)

var errNamespaceGone = errors.New("the Namespace is being deleted")

// session keeps the Pods of a Namespace until that is deleted. The one that is created
// after it has another session.
type session struct {
	*Controller
	uid types.UID

	pods   cache.SharedIndexInformer
	limits externalversions.SharedInformerFactory
	names  externalversions.SharedInformerFactory // of the Namespace
	queue  workqueue.TypedRateLimitingInterface[string]

	// limitsChanged is the time.Time of the last event of a LimitRange or ResourceQuota.
	limitsChanged atomic.Value

	desired   *desiredPods
	problems  *problems
	published published

	applied sync.Map // of applied, by the name of the Pod in the API
	// leaseHeld is whether another process has, or has had, the Lease.
	leaseHeld atomic.Bool
	// progressed receives when something may have been completed.
	progressed chan struct{}
}

func (c *Controller) newSession(uid types.UID, end context.CancelCauseFunc) (*session, error) {
	s := &session{
		Controller: c,
		uid:        uid,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryBaseDelay, retryMaxDelay),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "source"},
		),
		desired:    newDesiredPods(c.source),
		published:  published{restore: newBackoff()},
		progressed: make(chan struct{}, 1),
	}
	s.limitsChanged.Store(time.Time{})
	s.problems = newProblems(func() { s.queue.Add(statusKey) })
	s.pods = dynamicinformer.NewFilteredDynamicInformer(c.dynamicClient, podResource, c.namespace, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
		options.LabelSelector = labels.Set{source.Label: c.source.ID()}.String()
	}).Informer()
	s.limits = externalversions.NewSharedInformerFactoryWithOptions(c.tenancy, 0, externalversions.WithNamespace(c.namespace))
	s.names = externalversions.NewSharedInformerFactoryWithOptions(c.tenancy, 0, externalversions.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, c.namespace).String()
	}))
	return s, s.addHandlers(end)
}

func (s *session) addHandlers(end context.CancelCauseFunc) error {
	enqueue := func(object any) {
		if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
			s.queue.Add(name.Name)
		}
	}
	_, podErr := s.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, pod any) { enqueue(pod) },
		DeleteFunc: enqueue,
	})
	retry := func() {
		s.limitsChanged.Store(time.Now())
		s.retryRefused()
	}
	_, limitErr := s.limits.Tenancy().V1().LimitRanges().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { retry() },
		UpdateFunc: func(old, limit any) {
			if !reflect.DeepEqual(old.(*v1.LimitRange).Spec, limit.(*v1.LimitRange).Spec) {
				retry()
			}
		},
		DeleteFunc: func(any) { retry() },
	})
	_, quotaErr := s.limits.Tenancy().V1().ResourceQuotas().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { retry() },
		UpdateFunc: func(old, quota any) {
			if allowsMore(old.(*v1.ResourceQuota), quota.(*v1.ResourceQuota)) {
				retry()
			}
		},
		DeleteFunc: func(any) { retry() },
	})
	_, namespaceErr := s.names.Tenancy().V1().Namespaces().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(namespace any) { s.checkNamespace(namespace.(*v1.Namespace), end) },
		UpdateFunc: func(_, namespace any) {
			s.checkNamespace(namespace.(*v1.Namespace), end)
		},
		DeleteFunc: func(any) { end(errNamespaceGone) },
	})
	if err := errors.Join(podErr, limitErr, quotaErr, namespaceErr, s.pods.SetTransform(dropManagedFields)); err != nil {
		return fmt.Errorf("set up the informers: %w", err)
	}
	return nil
}

func (s *session) retryRefused() {
	for _, name := range s.problems.refusedNames() {
		s.problems.retryPod(name)
		s.queue.Add(name)
	}
}

// retryPeriodically retries the writes that were refused until the context ends. No event
// says that a webhook or a policy allows them by now.
func (s *session) retryPeriodically(ctx context.Context) {
	ticker := time.NewTicker(s.refusedRetryPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.retryRefused()
		case <-ctx.Done():
			return
		}
	}
}

// checkNamespace ends the session if the Namespace is another one or is being deleted, and
// publishes the status again if another client has changed it.
func (s *session) checkNamespace(namespace *v1.Namespace, end context.CancelCauseFunc) {
	switch {
	case namespace.Name != s.namespace:
	case namespace.UID != s.uid || namespace.DeletionTimestamp != nil:
		end(errNamespaceGone)
	default:
		s.restoreAnnotation(namespace)
	}
}

func dropManagedFields(object any) (any, error) {
	if pod, ok := object.(*unstructured.Unstructured); ok {
		pod.SetManagedFields(nil)
	}
	return object, nil
}

// allowsMore reports whether a quota may admit what it did not admit before.
func allowsMore(old, quota *v1.ResourceQuota) bool {
	if !reflect.DeepEqual(old.Spec, quota.Spec) {
		return true
	}
	for name, used := range quota.Status.Used {
		if before, ok := old.Status.Used[name]; ok && used.Cmp(before) < 0 {
			return true
		}
	}
	return false
}

// startInformers starts the informers and waits until they have synced. stop returns when
// they have stopped.
func (s *session) startInformers(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.pods.RunWithContext(ctx) })
	s.limits.StartWithContext(ctx)
	s.names.StartWithContext(ctx)
	stop = func() {
		cancel()
		s.limits.Shutdown()
		s.names.Shutdown()
		running.Wait()
	}
	s.names.WaitForCacheSync(ctx.Done())
	// First: in a Namespace that is gone, the user can have no right to list the others.
	err = s.checkExists(ctx)
	if err == nil {
		s.limits.WaitForCacheSync(ctx.Done())
		cache.WaitForCacheSync(ctx.Done(), s.pods.HasSynced)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// checkExists returns errNamespaceGone if the Namespace was removed before its informer listed
// it: no event says so.
func (s *session) checkExists(ctx context.Context) error {
	for ctx.Err() == nil {
		if _, err := s.names.Tenancy().V1().Namespaces().Lister().Get(s.namespace); err == nil {
			return nil // events say what happens to it
		}
		// The list can be older than the Namespace.
		switch namespace, err := s.findNamespace(ctx); {
		case err == nil && (namespace == nil || namespace.UID != s.uid):
			return errNamespaceGone
		case err == nil:
			return nil
		}
		select {
		case <-time.After(retryBaseDelay):
		case <-ctx.Done():
		}
	}
	return nil // the caller returns why the context has ended
}

// handle takes over what was read of the source.
func (s *session) handle(ctx context.Context, content source.Content, err error) {
	if err != nil {
		s.problems.setSource(message(err))
		return
	}
	names, problems := s.desired.set(content)
	s.problems.setContent(problems)
	for _, name := range names {
		s.queue.Add(name)
	}
	for _, name := range s.liveNames() {
		s.queue.Add(name)
	}
	klog.FromContext(ctx).V(2).Info("Read the source", "files", len(content.Files), "problems", len(problems))
}

// runWorkers writes until the context ends.
func (s *session) runWorkers(ctx context.Context) {
	defer context.AfterFunc(ctx, s.queue.ShutDown)()
	var running sync.WaitGroup
	running.Go(func() { s.retryPeriodically(ctx) })
	for range workers {
		running.Go(func() {
			for s.work(ctx) {
			}
		})
	}
	running.Wait()
}

func (s *session) work(ctx context.Context) bool {
	key, shutdown := s.queue.Get()
	if shutdown {
		return false
	}
	defer s.progress()
	defer s.queue.Done(key)
	defer utilruntime.HandleCrashWithContext(ctx)
	var err error
	if key == statusKey {
		err = s.publish(ctx)
	} else {
		err = s.sync(ctx, key)
	}
	if err == nil {
		s.queue.Forget(key)
		return true
	}
	if ctx.Err() == nil && !isNotOwned(err) { // that is in the log as a problem
		attempt := s.queue.NumRequeues(key) + 1
		klog.FromContext(ctx).Info("A write failed, will retry", "pod", key, "attempt", attempt, "err", err)
		if attempt >= reportedAttempts && key != statusKey {
			s.report(key, err)
		}
	}
	s.queue.AddRateLimited(key)
	return true
}

func (s *session) progress() {
	select {
	case s.progressed <- struct{}{}:
	default:
	}
}

// awaitConverged returns when nothing remains to be done or awaited.
func (s *session) awaitConverged(ctx context.Context) error {
	for {
		if s.isConverged() {
			return nil
		}
		select {
		case <-s.progressed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *session) isConverged() bool {
	if s.queue.Len() > 0 || !s.published.is(s.problems.list()) {
		return false
	}
	return !slices.ContainsFunc(append(s.liveNames(), s.desired.names()...), s.isPending)
}

// liveNames returns the names of the Pods in the cache.
func (s *session) liveNames() (names []string) {
	for _, object := range s.pods.GetStore().List() {
		names = append(names, object.(*unstructured.Unstructured).GetName())
	}
	return names
}
