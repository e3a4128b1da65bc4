// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/pkg/truncate"
)

// published are the problems that are shown.
type published struct {
	mu sync.Mutex
	// announced are those in the log and in Events.
	announced []source.Problem
	// shown are those in the annotation, and value is what it has, if isShown.
	shown   []source.Problem
	value   string
	isShown bool
	// publishing is whether they are being published.
	publishing bool
	// restore has the delays after which the annotation is set again.
	restore wait.Backoff
}

// is reports whether the problems are shown.
func (p *published) is(problems []source.Problem) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isShown && !p.publishing && slices.Equal(p.shown, problems)
}

// announce returns those of the problems that were not announced before, and whether there
// were others.
func (p *published) announce(problems []source.Problem) (added []source.Problem, had bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	had = len(p.announced) > 0
	for _, problem := range problems {
		if !slices.Contains(p.announced, problem) {
			added = append(added, problem)
		}
	}
	if !slices.Equal(p.announced, problems) {
		p.restore = newBackoff()
	}
	p.announced = problems
	return added, had
}

func (p *published) setPublishing(publishing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.publishing = publishing
}

func (p *published) setShown(problems []source.Problem, value string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isShown, p.shown, p.value = true, problems, value
}

// isChanged reports whether the annotation of the Namespace no longer has the value that was
// set, and after which delay it has to be set again: another client can set it each time.
func (p *published) isChanged(namespace *v1.Namespace, annotation string) (delay time.Duration, changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isShown || namespace.Annotations[annotation] == p.value {
		return 0, false
	}
	p.isShown = false
	return p.restore.Step(), true
}

// publish shows the problems: those that are new in the log and as Events, all of them in
// the annotation of the Namespace and the metrics.
func (s *session) publish(ctx context.Context) error {
	problems := s.problems.list()
	if s.published.is(problems) {
		return nil
	}
	s.published.setPublishing(true)
	defer s.published.setPublishing(false)
	logger := klog.FromContext(ctx)
	added, had := s.published.announce(problems)
	for _, problem := range added {
		logger.Info("The Pods in the API differ from those of the source", "file", problem.File, "pod", problem.Pod, "reason", problem.Message)
	}
	if had && len(problems) == 0 {
		logger.Info("The source has no problems any more")
	}
	s.metrics.set(s.source, problems)
	namespace, err := s.annotate(ctx, problems)
	if err == nil {
		s.published.setShown(problems, namespace.Annotations[s.source.StatusAnnotation()])
		s.checkAnnotation(namespace)
	}
	// Last, because a server can delay each Event, such as by a rate limit.
	s.createEvents(ctx, added)
	if err != nil {
		return fmt.Errorf("annotate the Namespace: %w", err)
	}
	return nil
}

// checkAnnotation checks whether the Namespace in the cache is newer than that after a write, and
// has another annotation: its event came before the response to the write.
func (s *session) checkAnnotation(written *v1.Namespace) {
	cached, err := s.names.Tenancy().V1().Namespaces().Lister().Get(s.namespace)
	if err != nil {
		return // not in the cache, and so without an event
	}
	if order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, written.ResourceVersion); err == nil && order > 0 {
		s.restoreAnnotation(cached)
	}
}

// restoreAnnotation sets the annotation again if it was changed.
func (s *session) restoreAnnotation(namespace *v1.Namespace) {
	if delay, changed := s.published.isChanged(namespace, s.source.StatusAnnotation()); changed {
		s.queue.AddAfter(statusKey, delay)
	}
}

// statusManager is the field manager of the annotations of all sources: an object has a bounded
// number of managers, and sources can share a Namespace.
const statusManager = "borough-source"

// annotate sets the annotation of the Namespace, and returns the Namespace. In one that other
// sources can share, it is there only if there are problems: the annotations of an object have
// at most 256 KiB.
func (s *session) annotate(ctx context.Context, problems []source.Problem) (*v1.Namespace, error) {
	annotations := map[string]any{s.source.StatusAnnotation(): nil} // removes it
	if len(problems) > 0 || s.config.Namespace == "" {
		status, err := json.Marshal(s.status(problems))
		if err != nil {
			return nil, err
		}
		annotations[s.source.StatusAnnotation()] = string(status)
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": s.uid, "annotations": annotations}})
	if err != nil {
		return nil, err
	}
	return s.tenancy.TenancyV1().Namespaces().Patch(ctx, s.namespace, types.MergePatchType, data, metav1.PatchOptions{FieldManager: statusManager})
}

// status returns the status with as many problems as fit.
func (s *session) status(problems []source.Problem) source.Status {
	status := source.Status{Source: s.source.String(), Node: s.source.Node}
	for size := 0; len(status.Problems) < min(len(problems), source.MaxProblems); {
		problem := problems[len(status.Problems)]
		if size += len(problem.File) + len(problem.Pod) + len(problem.Message); size > source.MaxProblemBytes {
			break
		}
		status.Problems = append(status.Problems, problem)
	}
	status.MoreProblems = len(problems) - len(status.Problems)
	return status
}

// eventsTimeout is how long the Events of the new problems may take, all together.
const eventsTimeout = 5 * time.Second

// createEvents creates Events for the first of the problems.
func (s *session) createEvents(ctx context.Context, problems []source.Problem) {
	ctx, cancel := context.WithTimeout(ctx, eventsTimeout)
	defer cancel()
	for _, problem := range problems[:min(len(problems), source.MaxProblems)] {
		if err := s.createEvent(ctx, problem); err != nil {
			klog.FromContext(ctx).V(2).Info("Cannot create an Event", "err", err)
		}
	}
}

// maxInstance is the number of bytes of a reportingInstance, of which an Event can have 128,
// before it is cut. Names of nodes can be longer.
const maxInstance = 125

// createEvent creates an Event, if the server serves Events and the user may create them.
func (s *session) createEvent(ctx context.Context, problem source.Problem) error {
	reason, text := "SourceNotRead", problem.Message
	switch {
	case problem.Pod != "":
		reason, text = "PodRefused", fmt.Sprintf("Pod %s: %s", problem.Pod, problem.Message)
	case problem.File != "":
		text = fmt.Sprintf("File %s: %s", problem.File, problem.Message)
	}
	_, err := s.kubernetes.EventsV1().Events(s.namespace).Create(ctx, &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{GenerateName: "borough-source-"},
		EventTime:           metav1.NewMicroTime(time.Now()),
		ReportingController: "borough.io/borough-source",
		ReportingInstance:   truncate.Text(s.source.Node, maxInstance),
		Action:              "Synchronize",
		Reason:              reason,
		Type:                corev1.EventTypeWarning,
		Note:                text,
		Regarding: corev1.ObjectReference{
			APIVersion: v1.SchemeGroupVersion.String(), Kind: "Namespace",
			Namespace: s.namespace, Name: s.namespace, UID: s.uid,
		},
	}, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
