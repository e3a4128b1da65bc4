// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconcile keeps certificates in the objects of a cluster up to date.
package reconcile

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// syncTimeout bounds the wait for a cluster that does not respond.
	syncTimeout = 15 * time.Second
	// logInterval is between two lines in the log with the same error.
	logInterval = 10 * time.Minute
	// clockInterval is how often the loop looks whether the clock was set, by more than
	// clockTolerance.
	clockInterval  = 10 * time.Minute
	clockTolerance = time.Minute
)

// Loop calls a function when the objects that it watches have changed, at the time
// that the function has returned, when the clock was set, and again after an error, with a
// delay that grows to 5s.
type Loop struct {
	// failure is what is logged with an error.
	failure   string
	sync      func(context.Context) (next time.Time, err error)
	informers []cache.SharedInformer
	// changed has a token if an object has changed.
	changed chan struct{}
	// failing is true until sync has succeeded, and while it fails.
	failing atomic.Bool
	// wallClock returns the time of the clock.
	wallClock func() time.Time
}

// NewLoop returns a loop that calls sync. sync returns when it is to be called again at
// the latest. It returns a conflict if another replica has written an object. Its
// other errors are logged with the text failure.
func NewLoop(failure string, sync func(context.Context) (next time.Time, err error)) *Loop {
	l := &Loop{failure: failure, sync: sync, changed: make(chan struct{}, 1), wallClock: func() time.Time { return time.Now().Round(0) }}
	l.failing.Store(true)
	return l
}

// WatchSecret makes changes of the Secret call sync. It must be called before Run.
func (l *Loop) WatchSecret(client kubernetes.Interface, secret types.NamespacedName) error {
	secrets := client.CoreV1().Secrets(secret.Namespace)
	return l.Watch(&corev1.Secret{}, secret.Name, client,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return secrets.List(ctx, o) },
		secrets.Watch)
}

// Watch makes changes of one object, which the client lists and watches, call sync. It
// must be called before Run.
func (l *Loop) Watch(example runtime.Object, name string, client any, list cache.ListWithContextFunc, watcher cache.WatchFuncWithContext) error {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	informer := cache.NewSharedInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return watcher(ctx, o)
		},
	}, client), example, 0)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { l.wake() },
		UpdateFunc: func(any, any) { l.wake() },
		DeleteFunc: func(any) { l.wake() },
	}); err != nil {
		return fmt.Errorf("watch %s: %w", name, err)
	}
	if err := informer.SetWatchErrorHandlerWithContext(l.watchFailed); err != nil {
		return fmt.Errorf("watch %s: %w", name, err)
	}
	l.informers = append(l.informers, informer)
	return nil
}

func (l *Loop) wake() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// watchFailed reports the error of a watch. While sync fails it has the same error, and
// reports it once.
func (l *Loop) watchFailed(ctx context.Context, reflector *cache.Reflector, err error) {
	if !l.failing.Load() {
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	}
}

// record records the result of sync.
func (l *Loop) record(err error) {
	l.failing.Store(err != nil)
	value := 0.0
	if err != nil {
		value = 1
	}
	failingGauge.Set(value)
}

// Run calls sync until the context ends.
func (l *Loop) Run(ctx context.Context) {
	var informers sync.WaitGroup
	defer informers.Wait()
	for _, informer := range l.informers {
		informers.Go(func() { informer.RunWithContext(ctx) })
	}

	logger := klog.FromContext(ctx)
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 5 * time.Second}
	retry, reported, logged := backoff, "", time.Time{}
	for {
		syncCtx, cancel := context.WithTimeout(ctx, syncTimeout)
		next, err := l.sync(syncCtx)
		cancel()
		l.record(err)
		changed := l.changed
		switch {
		case err == nil:
			retry, reported = backoff, ""
		case apierrors.IsConflict(err):
			changed = nil // by another replica, which may not have finished
		case ctx.Err() == nil && (err.Error() != reported || time.Since(logged) >= logInterval):
			reported, logged = err.Error(), time.Now()
			logger.Error(err, l.failure)
		}
		if err != nil {
			next = time.Now().Add(retry.Step())
		}
		if !l.await(ctx, changed, next) {
			return
		}
	}
}

// await waits until an object has changed or it is time, and returns false if the context
// ends before. Timers do not follow the clock when it is set, or when the machine was
// suspended. Either can make a certificate invalid at once, so await then returns, too.
func (l *Loop) await(ctx context.Context, changed <-chan struct{}, next time.Time) bool {
	began, wallBegan := time.Now(), l.wallClock()
	for {
		timer := time.NewTimer(min(time.Until(next), clockInterval))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-changed:
			timer.Stop()
			return true
		case <-timer.C:
		}
		set := l.wallClock().Sub(wallBegan) - time.Since(began)
		if set.Abs() > clockTolerance || time.Until(next) <= 0 {
			return true
		}
	}
}
