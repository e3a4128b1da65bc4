// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podsource keeps the Pods of a Namespace equal to those of a source outside of the
// API, a file or a URL. The Pods that it writes have the label of the source; it does not
// change or delete others.
package podsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	componentconfig "k8s.io/component-base/config"
	"k8s.io/klog/v2"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/leader"
	"github.com/borough-io/borough/pkg/source"
)

var podResource = v1.SchemeGroupVersion.WithResource("pods")

// Config is the configuration of a Controller.
type Config struct {
	Source source.Identity
	Reader source.Reader
	// Namespace is the name of the Namespace. If empty, that of the source.
	Namespace string
	// LeaderElection lets only one of several processes write for the source, by a Lease
	// whose name depends on the source. If ResourceNamespace is empty, the Lease is in the
	// Namespace.
	LeaderElection componentconfig.LeaderElectionConfiguration
	// Prune deletes the Namespace at the end, if the controller has created it. It does not if
	// the context has ended with a cause, which is an error, such as that of another source.
	Prune bool
}

// Controller keeps the Pods of a source in a Namespace.
type Controller struct {
	config       Config
	source       source.Identity
	namespace    string
	fieldManager string
	metrics      *Metrics
	// refusedRetryPeriod is the constant, except in tests.
	refusedRetryPeriod time.Duration

	tenancy       versioned.Interface
	kubernetes    kubernetes.Interface
	dynamicClient dynamic.Interface
	podClient     dynamic.ResourceInterface

	ready atomic.Bool
}

// New returns a Controller for the server that the client config reaches.
func New(client *rest.Config, config Config, metrics *Metrics) (*Controller, error) {
	c := &Controller{
		config:       config,
		source:       config.Source,
		namespace:    config.Namespace,
		fieldManager: "borough-source-" + config.Source.ID(),
		metrics:      metrics,

		refusedRetryPeriod: refusedRetryPeriod,
	}
	if c.namespace == "" {
		c.namespace = c.source.Namespace()
	}
	var err error
	if c.tenancy, err = versioned.NewForConfig(client); err == nil {
		c.kubernetes, err = kubernetes.NewForConfig(client)
	}
	if err == nil {
		c.dynamicClient, err = dynamic.NewForConfig(client)
	}
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	c.podClient = c.dynamicClient.Resource(podResource).Namespace(c.namespace)
	return c, nil
}

// Ready returns an error while this process has not read the source since it got the Lease,
// and does not know that another process writes for it.
func (c *Controller) Ready() error {
	if !c.ready.Load() {
		return fmt.Errorf("the source %s has not been read yet", c.source)
	}
	return nil
}

// Run keeps the Pods until the context ends. It returns an error if it cannot.
func (c *Controller) Run(ctx context.Context) error {
	ctx = c.withLogger(ctx)
	for ctx.Err() == nil {
		c.ready.Store(false)
		namespace, err := c.ensureNamespace(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		stopped := false // while this process had the Lease
		err = c.runSession(ctx, namespace, 0, func(ctx context.Context, s *session) error {
			defer func() { stopped = context.Cause(ctx) == context.Canceled }()
			return c.config.Reader.Run(ctx, func(content source.Content, err error) {
				s.handle(ctx, content, err)
				c.ready.Store(true)
			})
		})
		switch {
		// Without the Lease, the Namespace is that of another process.
		case stopped && c.config.Prune && namespace.Labels[source.Label] == c.source.ID():
			return c.prune(context.WithoutCancel(ctx), namespace)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errNamespaceGone), errors.Is(err, leader.ErrLost):
			klog.FromContext(ctx).Info("Starting again", "err", err)
		default:
			return err
		}
	}
	return nil
}

// Converge makes the Pods those of the source, and returns when they are, or all that are not
// were refused. It returns an error that has the problems.
func (c *Controller) Converge(ctx context.Context) error {
	ctx = c.withLogger(ctx)
	for {
		namespace, err := c.ensureNamespace(ctx)
		if err != nil {
			return err
		}
		var remaining []source.Problem
		err = c.runSession(ctx, namespace, c.leaseTimeout(), func(ctx context.Context, s *session) error {
			content, err := c.config.Reader.Read(ctx)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			s.handle(ctx, content, err)
			err = s.awaitConverged(ctx)
			remaining = s.problems.list()
			return err
		})
		if ctx.Err() != nil {
			err = fmt.Errorf("make the Pods those of %s: %w", c.source, context.Cause(ctx))
			return utilerrors.NewAggregate([]error{err, problemsError(remaining)})
		}
		if !errors.Is(err, errNamespaceGone) && !errors.Is(err, leader.ErrLost) {
			return utilerrors.NewAggregate([]error{err, problemsError(remaining)})
		}
	}
}

func problemsError(problems []source.Problem) error {
	var errs []error
	for _, problem := range problems {
		switch {
		case problem.Pod != "":
			errs = append(errs, fmt.Errorf("the Pod %s: %s", problem.Pod, problem.Message))
		case problem.File != "":
			errs = append(errs, fmt.Errorf("the file %s: %s", problem.File, problem.Message))
		default:
			errs = append(errs, errors.New(problem.Message))
		}
	}
	return utilerrors.NewAggregate(errs)
}

func (c *Controller) withLogger(ctx context.Context) context.Context {
	return klog.NewContext(ctx, klog.FromContext(ctx).WithValues("source", c.source.String(), "namespace", c.namespace))
}

// errNoLease ends Converge.
var errNoLease = errors.New("did not get the Lease")

// leaseTimeout is how long Converge waits for the Lease. That of a process that was killed
// has expired then: it is noticed up to one retry late, and so is its expiry. The library
// makes a retry up to 1.2 times as long.
func (c *Controller) leaseTimeout() time.Duration {
	election := c.config.LeaderElection
	return election.LeaseDuration.Duration + 3*election.RetryPeriod.Duration
}

// runSession calls work while this process holds the Lease, with workers that write. It
// returns when work returns, when the Namespace is being deleted (errNamespaceGone), when the
// Lease is lost (leader.ErrLost), or if it does not get the Lease within a timeout that is not
// 0 (errNoLease).
func (c *Controller) runSession(ctx context.Context, namespace *v1.Namespace, leaseTimeout time.Duration, work func(context.Context, *session) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s, err := c.newSession(namespace.UID, end)
	if err != nil {
		return err
	}
	defer s.queue.ShutDown()
	stop, err := s.startInformers(ctx)
	if err != nil {
		return err
	}
	defer stop()

	led := func() bool { return true }
	if leaseTimeout > 0 {
		led = time.AfterFunc(leaseTimeout, func() { end(s.leaseError(leaseTimeout)) }).Stop
	}
	var workErr error
	err = s.lead(ctx, func(leading context.Context) {
		if !led() {
			return
		}
		working, cancel := context.WithCancel(leading)
		var writing sync.WaitGroup
		writing.Go(func() { s.runWorkers(working) })
		workErr = work(working, s)
		cancel()
		writing.Wait()
		c.metrics.remove(c.source)
		if leading.Err() == nil {
			end(workErr) // ends the election
		}
	})
	if cause := context.Cause(ctx); errors.Is(cause, errNamespaceGone) || errors.Is(cause, errNoLease) {
		return cause
	}
	return errors.Join(workErr, err)
}

// lead calls work when this process holds the Lease.
func (s *session) lead(ctx context.Context, work func(context.Context)) error {
	if !s.config.LeaderElection.LeaderElect {
		work(ctx)
		return nil
	}
	logger := klog.FromContext(ctx)
	return leader.Run(ctx, leader.Config{
		LeaderElectionConfiguration: s.election(),
		Leases:                      s.kubernetes.CoordinationV1(),
		Waiting: func(holder string) {
			logger.Info("Another process writes for the source, waiting until it has ended", "holder", holder, "lease", s.lease())
			s.leaseHeld.Store(true)
			s.ready.Store(true)
		},
	}, work)
}

// election returns the configuration of the leader election with the Lease of the source.
func (c *Controller) election() componentconfig.LeaderElectionConfiguration {
	election := c.config.LeaderElection
	election.ResourceName = "borough-source-" + c.source.ID()
	election.ResourceNamespace = cmp.Or(election.ResourceNamespace, c.namespace)
	return election
}

func (c *Controller) lease() klog.ObjectRef {
	election := c.election()
	return klog.KRef(election.ResourceNamespace, election.ResourceName)
}

// leaseError returns why the session did not get the Lease within a timeout.
func (s *session) leaseError(timeout time.Duration) error {
	reason := "the log says why; --leader-elect-resource-namespace sets its namespace"
	if s.leaseHeld.Load() {
		reason = "another process writes for the source"
	}
	return fmt.Errorf("%w %s within %s: %s", errNoLease, s.lease(), timeout, reason)
}
