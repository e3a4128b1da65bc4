// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

const (
	// Label is the key of the label of a Pod, and of the Namespace that was created for a
	// source, with the ID of the source.
	Label = v1.GroupName + "/source"
	// UIDAnnotation is the key of the annotation of a Pod with its source UID. It stays the
	// same when the Pod is replaced.
	UIDAnnotation = v1.GroupName + "/source-uid"
	// FileAnnotation is the key of the annotation of a Pod with the name of its file in a
	// directory.
	FileAnnotation = v1.GroupName + "/source-file"

	// KindAnnotation, HashAnnotation and SeenAnnotation are the keys of the annotations
	// that the kubelet gives Pods of its sources: the kind of the source, a hash of the
	// content, and when the Pod was first seen (RFC 3339).
	KindAnnotation = "kubernetes.io/config.source"
	HashAnnotation = "kubernetes.io/config.hash"
	SeenAnnotation = "kubernetes.io/config.seen"
)

// StatusAnnotation returns the key of the annotation of a Namespace with the Status of the
// source.
func (i Identity) StatusAnnotation() string { return "source." + v1.GroupName + "/" + i.ID() }

// Pod returns a Pod of the source as it is in the API, from the Pod of a file in it. It has
// no SeenAnnotation.
func (i Identity) Pod(file string, pod *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	name, err := i.podName(pod.GetName())
	if err != nil {
		return nil, err
	}
	pod = pod.DeepCopy()
	if err := unstructured.SetNestedField(pod.Object, i.Node, "spec", "nodeName"); err != nil {
		return nil, fmt.Errorf("set spec.nodeName: %w", err)
	}
	// Keys are sorted, so the same content has the same hash.
	content, err := json.Marshal(pod.Object)
	if err != nil {
		return nil, fmt.Errorf("encode the Pod: %w", err)
	}
	hash := sha256.Sum256(content)
	labels := pod.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[Label] = i.ID()
	annotations := pod.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, SeenAnnotation)
	maps.Copy(annotations, map[string]string{
		KindAnnotation: string(i.Kind),
		HashAnnotation: hex.EncodeToString(hash[:16]),
		UIDAnnotation:  string(i.UID(pod.GetName())),
		FileAnnotation: file,
	})
	pod.SetName(name)
	pod.SetLabels(labels)
	pod.SetAnnotations(annotations)
	return pod, nil
}

// Owns reports whether a Pod in the API is one of the source. The label is not enough: a
// user who may only update the status of a Pod can set it, but not change the node or the name.
func (i Identity) Owns(pod *unstructured.Unstructured) bool {
	node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	return pod.GetLabels()[Label] == i.ID() && node == i.Node && strings.HasSuffix(pod.GetName(), "-"+i.Node)
}

// Status is the state of a source, in JSON in an annotation of its Namespace.
type Status struct {
	// Source is the location.
	Source string `json:"source"`
	// Node is the node.
	Node string `json:"node"`
	// Problems are why the Pods in the API are not those of the source. There are at most
	// MaxProblems, with MaxProblemBytes.
	Problems []Problem `json:"problems,omitempty"`
	// MoreProblems is the number of problems that are not in Problems.
	MoreProblems int `json:"moreProblems,omitempty"`
}

const (
	// MaxProblems is the number of problems in a Status.
	MaxProblems = 20
	// MaxProblemBytes is the length of the texts of all problems in a Status.
	MaxProblemBytes = 4096
)

// Problem is a reason why the Pods in the API are not those of a source.
type Problem struct {
	// File is the name of the file that has the problem, or the Pod. It is empty if the
	// source is not a directory.
	File string `json:"file,omitempty"`
	// Pod is the name of the Pod in the source. It is empty if a file or the whole source
	// cannot be read.
	Pod string `json:"pod,omitempty"`
	// Message says what the problem is.
	Message string `json:"message"`
}
