// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/source"
)

// applied is what a Pod was when it was last as in the source.
type applied struct {
	hash        string // of the desired Pod
	fingerprint string // of the Pod in the API
}

// fingerprint returns the part of a Pod that a source can change.
func fingerprint(pod *unstructured.Unstructured) (string, error) {
	data, err := json.Marshal([]any{pod.GetUID(), pod.GetLabels(), pod.GetAnnotations(), pod.GetFinalizers(), pod.Object["spec"]})
	return string(data), err
}

// sync makes a Pod in the API what it is in the source. An error is tried again.
func (s *session) sync(ctx context.Context, name string) error {
	began := time.Now()
	live, err := s.live(name)
	if err != nil {
		return err
	}
	pod, known := s.desired.get(name, live)
	switch {
	case !known && live != nil && live.GetDeletionTimestamp() != nil:
		return s.remove(ctx, live) // it ends, regardless of what the source has
	case !known:
		return nil
	case pod == nil:
		s.applied.Delete(name)
		if live != nil {
			if err := s.remove(ctx, live); err != nil {
				return err
			}
		}
		s.problems.resolvePod(name)
		return nil
	}
	refusal := s.problems.refusal(name, pod.hash())
	refused := refusal != nil && !isNotOwned(refusal)
	if live == nil && !refused {
		if live, err = s.getOwn(ctx, name); err != nil {
			return s.fail(ctx, name, pod, began, err)
		}
	}
	switch {
	case live != nil && live.GetDeletionTimestamp() != nil:
		return s.remove(ctx, live)
	case refused:
		return nil
	}
	if err := s.write(ctx, pod, live); err != nil {
		return s.fail(ctx, name, pod, began, err)
	}
	s.problems.resolvePod(name)
	return nil
}

// fail reports the error of a sync that began at a time if it is a refusal of the Pod,
// and returns it if it has to be tried again.
func (s *session) fail(ctx context.Context, name string, pod *desiredPod, began time.Time, err error) error {
	refused, checkErr := s.isRefusal(ctx, err)
	switch {
	case checkErr != nil:
		return checkErr
	case !refused:
		return err
	}
	s.problems.refuse(name, pod, err)
	if isNotOwned(err) {
		return err // no event says that the other Pod is gone
	}
	if changed := s.limitsChanged.Load().(time.Time); changed.After(began.Add(-limitsDelay)) {
		s.problems.retryPod(name)
		// Each delay is about twice the one before.
		s.queue.AddAfter(name, max(limitsDelay/10, time.Since(changed)))
	}
	return nil
}

// report shows the error of a Pod whose sync has failed repeatedly.
func (s *session) report(name string, err error) {
	problem := source.Problem{Pod: name, Message: message(err)}
	if pod, _ := s.desired.get(name, nil); pod != nil {
		problem.Pod, problem.File = pod.name, pod.file
	}
	s.problems.fail(name, problem)
}

// write creates, updates or replaces the Pod, unless it is as in the source.
func (s *session) write(ctx context.Context, pod *desiredPod, live *unstructured.Unstructured) error {
	if live == nil {
		return s.apply(ctx, pod, nil)
	}
	if current, err := s.isCurrent(pod, live); err != nil || current {
		return err
	}
	err := s.apply(ctx, pod, live)
	if apierrors.IsInvalid(err) {
		return s.replace(ctx, pod, live)
	}
	return err
}

// isCurrent reports whether the Pod in the API is as in the source.
func (s *session) isCurrent(pod *desiredPod, live *unstructured.Unstructured) (bool, error) {
	current, err := fingerprint(live)
	if err != nil {
		return false, fmt.Errorf("compare the Pod %s: %w", live.GetName(), err)
	}
	last, _ := s.applied.Load(live.GetName())
	return last == applied{hash: pod.hash(), fingerprint: current}, nil
}

// live returns the Pod, or nil, from the cache.
func (s *session) live(name string) (*unstructured.Unstructured, error) {
	object, exists, err := s.pods.GetStore().GetByKey(s.namespace + "/" + name)
	if err != nil || !exists {
		return nil, err
	}
	if pod := object.(*unstructured.Unstructured); s.source.Owns(pod) {
		return pod, nil
	}
	return nil, nil
}

// apply creates or updates the Pod by server-side apply.
func (s *session) apply(ctx context.Context, pod *desiredPod, live *unstructured.Unstructured) error {
	name := pod.object.GetName()
	result, err := s.patch(ctx, pod, live, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	current, err := fingerprint(result)
	if err != nil {
		return fmt.Errorf("compare the Pod %s: %w", name, err)
	}
	s.applied.Store(name, applied{hash: pod.hash(), fingerprint: current})
	return nil
}

func (c *Controller) patch(ctx context.Context, pod *desiredPod, live *unstructured.Unstructured, options metav1.PatchOptions) (*unstructured.Unstructured, error) {
	object := withSeen(pod.object, live)
	if live != nil {
		object.SetUID(live.GetUID()) // another Pod that has its name by now stays as it is
	}
	data, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encode the Pod %s: %w", pod.object.GetName(), err)
	}
	options.FieldManager = c.fieldManager
	// If there is a Pod by now that another has created, the apply conflicts: at least its
	// label of the source differs, or is missing.
	options.Force = new(live != nil)
	return c.podClient.Patch(ctx, pod.object.GetName(), types.ApplyPatchType, data, options)
}

// withSeen returns the Pod with the annotation when it was first seen, which stays that of
// the Pod in the API.
func withSeen(pod, live *unstructured.Unstructured) *unstructured.Unstructured {
	seen := ""
	if live != nil {
		seen = live.GetAnnotations()[source.SeenAnnotation]
	}
	if seen == "" {
		seen = time.Now().UTC().Format(time.RFC3339Nano)
	}
	pod = pod.DeepCopy()
	annotations := pod.GetAnnotations()
	annotations[source.SeenAnnotation] = seen
	pod.SetAnnotations(annotations)
	return pod
}

// errNotOwned refuses a Pod whose name another Pod has.
type errNotOwned struct{ name string }

func (e errNotOwned) Error() string {
	return fmt.Sprintf("there is a Pod %s that is not from this source", e.name)
}

func isNotOwned(err error) bool {
	_, ok := err.(errNotOwned)
	return ok
}

// getOwn returns a Pod that is not in the cache, or nil if there is none. It returns an error
// if the Pod is not from this source: an apply would change it.
func (c *Controller) getOwn(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	live, err := c.podClient.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !c.source.Owns(live):
		return nil, errNotOwned{name}
	}
	return live, nil
}

// replace deletes the Pod in the API, because an update cannot make it the desired one. It
// keeps the Pod if the desired one could not be created in addition to it.
func (s *session) replace(ctx context.Context, pod *desiredPod, live *unstructured.Unstructured) error {
	if _, err := s.tryCreate(ctx, pod); err != nil {
		return err
	}
	return s.remove(ctx, live)
}

// tryCreate creates the Pod with another name, in a dry run.
func (c *Controller) tryCreate(ctx context.Context, pod *desiredPod) (*unstructured.Unstructured, error) {
	name := pod.object.GetName()
	trial := withSeen(pod.object, nil)
	trial.SetName("")
	trial.SetGenerateName(name + "-")
	created, err := c.podClient.Create(ctx, trial, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: c.fieldManager})
	return created, withName(err, name)
}

// maxGenerateName is the number of bytes of a generateName that a generated name begins with.
const maxGenerateName = 58

// withName has the message of an error name the Pod. The name that the server has generated
// would make each refusal another one.
func withName(err error, name string) error {
	status, ok := err.(*apierrors.StatusError)
	if !ok || status.ErrStatus.Details == nil {
		return err
	}
	details := status.ErrStatus.Details
	prefix := name + "-"
	if strings.HasPrefix(details.Name, prefix[:min(len(prefix), maxGenerateName)]) {
		status.ErrStatus.Message = strings.ReplaceAll(status.ErrStatus.Message, details.Name, name)
		details.Name = name
	}
	return err
}

// remove deletes the Pod, now and again when its grace period is over.
func (s *session) remove(ctx context.Context, live *unstructured.Unstructured) error {
	deadline, err := s.deletePod(ctx, live)
	if err == nil {
		s.problems.resolveFailure(live.GetName())
	}
	if wait := time.Until(deadline); wait > 0 {
		s.queue.AddAfter(live.GetName(), wait)
	}
	return err // otherwise an event of the Pod follows
}

// isRefusal reports whether a write was refused because of the Pod or of what limits its
// Namespace, so that the same write is refused again until that changes.
func (s *session) isRefusal(ctx context.Context, err error) (bool, error) {
	switch {
	case isNotOwned(err):
		return true, nil
	case apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause):
		return false, nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return true, nil
	case !apierrors.IsForbidden(err):
		return false, nil
	}
	// A right can be granted at any time, and no event says so.
	for _, verb := range []string{"create", "patch"} {
		review, reviewErr := s.kubernetes.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: s.namespace, Verb: verb, Group: v1.GroupName, Resource: "pods",
			}},
		}, metav1.CreateOptions{})
		if reviewErr != nil {
			return false, fmt.Errorf("review the right to %s Pods: %w", verb, reviewErr)
		}
		if !review.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}

// isPending reports whether something remains to be done or awaited for the Pod.
func (s *session) isPending(name string) bool {
	live, err := s.live(name)
	if err != nil {
		return true
	}
	pod, known := s.desired.get(name, live)
	switch {
	case !known:
		return false
	case pod == nil:
		return live != nil
	case s.problems.refusal(name, pod.hash()) != nil:
		return false
	case live == nil || live.GetDeletionTimestamp() != nil:
		return true
	}
	current, err := s.isCurrent(pod, live)
	return err != nil || !current
}
