// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/source"
)

// contextLines is the number of lines that a diff shows before and after a change.
const contextLines = 3

// Diff writes what Converge would change, as a unified diff of each Pod, and changes nothing.
// It returns an error that has the problems.
func (c *Controller) Diff(ctx context.Context, out io.Writer) error {
	content, err := c.config.Reader.Read(ctx)
	if err != nil {
		return err
	}
	namespace, err := c.findNamespace(ctx)
	if err != nil {
		return err
	}
	var live map[string]*unstructured.Unstructured
	if namespace != nil {
		if live, err = c.listPods(ctx); err != nil {
			return err
		}
	}
	desired := newDesiredPods(c.source)
	_, problems := desired.set(content)
	names := slices.AppendSeq(desired.names(), maps.Keys(live))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		pod, known := desired.get(name, live[name])
		if !known {
			continue
		}
		var after *unstructured.Unstructured
		if pod != nil {
			after, err = c.preview(ctx, pod, live[name], namespace != nil)
			if err != nil {
				problems = append(problems, source.Problem{File: pod.file, Pod: pod.name, Message: message(err)})
				continue
			}
		}
		if err := writeDiff(out, name, live[name], after); err != nil {
			return err
		}
	}
	return problemsError(problems)
}

// findNamespace returns the Namespace, or nil if it does not exist.
func (c *Controller) findNamespace(ctx context.Context) (*v1.Namespace, error) {
	namespace, err := c.tenancy.TenancyV1().Namespaces().Get(ctx, c.namespace, metav1.GetOptions{})
	// A user without rights in a Namespace cannot find out whether it exists.
	if tenancyerrors.IsObjectNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	return namespace, err
}

// listPods returns the Pods of the source in the API.
func (c *Controller) listPods(ctx context.Context) (map[string]*unstructured.Unstructured, error) {
	list, err := c.podClient.List(ctx, metav1.ListOptions{LabelSelector: labels.Set{source.Label: c.source.ID()}.String()})
	if err != nil {
		return nil, err
	}
	pods := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		if pod := &list.Items[i]; c.source.Owns(pod) {
			pods[pod.GetName()] = pod
		}
	}
	return pods, nil
}

// preview returns the Pod as the server would store it.
func (c *Controller) preview(ctx context.Context, pod *desiredPod, live *unstructured.Unstructured, namespaceExists bool) (*unstructured.Unstructured, error) {
	if !namespaceExists {
		return pod.object, nil
	}
	if live == nil {
		var err error
		if live, err = c.getOwn(ctx, pod.object.GetName()); err != nil {
			return nil, err
		}
	}
	after, err := c.patch(ctx, pod, live, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if live != nil && apierrors.IsInvalid(err) {
		after, err = c.tryCreate(ctx, pod)
	}
	return after, err
}

func writeDiff(out io.Writer, name string, before, after *unstructured.Unstructured) error {
	from, fromErr := lines(before)
	to, toErr := lines(after)
	if err := errors.Join(fromErr, toErr); err != nil {
		return fmt.Errorf("compare the Pod %s: %w", name, err)
	}
	return difflib.WriteUnifiedDiff(out, difflib.UnifiedDiff{
		A: from, FromFile: "api/" + name, B: to, ToFile: "source/" + name, Context: contextLines,
	})
}

// lines returns what a source can change of a Pod, in YAML.
func lines(pod *unstructured.Unstructured) ([]string, error) {
	if pod == nil {
		return nil, nil
	}
	annotations := pod.GetAnnotations()
	delete(annotations, source.SeenAnnotation)
	metadata := map[string]any{"labels": pod.GetLabels(), "annotations": annotations}
	if finalizers := pod.GetFinalizers(); len(finalizers) > 0 {
		metadata["finalizers"] = finalizers
	}
	data, err := yaml.Marshal(map[string]any{"metadata": metadata, "spec": pod.Object["spec"]})
	if err != nil {
		return nil, err
	}
	return slices.Collect(strings.Lines(string(data))), nil
}
