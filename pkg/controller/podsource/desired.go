// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/pkg/truncate"
)

// desiredPods are the Pods that the source had when each of its files was last read. Its
// methods can be called concurrently.
type desiredPods struct {
	source source.Identity

	mu sync.Mutex
	// read is whether the source was read. Before, it is not known which Pods it has.
	read bool
	// files are the Pods of the files that were read.
	files map[string][]*unstructured.Unstructured
	// unread are the files that exist and were never read. Which Pods they have is not known.
	unread map[string]bool
	pods   map[string]*desiredPod // by their name in the API
}

// desiredPod is a Pod of the source.
type desiredPod struct {
	// name is the name in the source.
	name, file string
	object     *unstructured.Unstructured
}

// hash identifies what is to be written.
func (p *desiredPod) hash() string {
	return p.object.GetAnnotations()[source.HashAnnotation] + "/" + p.file
}

func newDesiredPods(identity source.Identity) *desiredPods {
	return &desiredPods{source: identity, files: map[string][]*unstructured.Unstructured{}}
}

// set takes over what was read. It returns the names in the API of all Pods from before and
// now, and the problems of the files and Pods that cannot be used.
func (d *desiredPods) set(content source.Content) (names []string, problems []source.Problem) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read = true
	d.unread = map[string]bool{}
	maps.DeleteFunc(d.files, func(file string, _ []*unstructured.Unstructured) bool {
		_, exists := content.Files[file]
		return !exists
	})
	for file, m := range content.Files {
		switch {
		case m.Err == nil:
			d.files[file] = m.Pods
			continue
		case d.files[file] == nil:
			d.unread[file] = true
		}
		problems = append(problems, source.Problem{File: file, Message: message(m.Err)})
	}

	before := d.pods
	d.pods = map[string]*desiredPod{}
	for _, file := range slices.Sorted(maps.Keys(d.files)) {
		for _, pod := range d.files[file] {
			if err := d.add(file, pod); err != nil {
				problems = append(problems, source.Problem{File: file, Pod: truncate.Text(pod.GetName(), maxName), Message: message(err)})
			}
		}
	}
	for name := range before {
		if d.pods[name] == nil {
			names = append(names, name)
		}
	}
	return slices.AppendSeq(names, maps.Keys(d.pods)), problems
}

func (d *desiredPods) add(file string, pod *unstructured.Unstructured) error {
	object, err := d.source.Pod(file, pod)
	if err != nil {
		return err
	}
	if other := d.pods[object.GetName()]; other != nil {
		return fmt.Errorf("the file %s has a Pod with the same name", other.file)
	}
	d.pods[object.GetName()] = &desiredPod{name: pod.GetName(), file: file, object: object}
	return nil
}

// get returns the Pod with the name in the API. If it is nil, known is whether the source
// does not have the Pod: a file that was never read may have it.
func (d *desiredPods) get(name string, live *unstructured.Unstructured) (pod *desiredPod, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if pod := d.pods[name]; pod != nil {
		return pod, true
	}
	return nil, d.read && (live == nil || !d.isUnread(live.GetAnnotations()[source.FileAnnotation]))
}

// isUnread reports whether a file that was never read may have the Pods of a file. If the source
// was a file, any file of the directory that has replaced it may have them.
func (d *desiredPods) isUnread(file string) bool {
	return d.unread[file] || file == "" && len(d.unread) > 0
}

// names returns the names in the API.
func (d *desiredPods) names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.pods))
}
