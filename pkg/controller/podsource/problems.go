// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/pkg/truncate"
)

// The number of bytes of a message, and of a name of a Pod, that are shown. Longer ones are
// cut off.
const (
	maxMessage = 500
	maxName    = validation.DNS1123SubdomainMaxLength
)

// message returns what is shown of an error.
func message(err error) string {
	text := err.Error()
	if status, ok := err.(apierrors.APIStatus); ok && status.Status().Message != "" {
		text = status.Status().Message
	}
	return truncate.Text(text, maxMessage)
}

// problems are why the Pods in the API are not those of the source. Its methods can be
// called concurrently.
type problems struct {
	// changed is called when the problems have changed.
	changed func()

	mu sync.Mutex
	// source is why the source could not be read, "" if it was.
	source string
	// content are the problems of what was read.
	content []source.Problem
	refused map[string]refusal // by the name of the Pod in the API
}

// refusal is a write that the server refused, or that has failed repeatedly.
type refusal struct {
	// hash is that of the Pod. It is empty when the write is to be tried again.
	hash string
	// err is nil if the write has failed.
	err     error
	problem source.Problem
}

func newProblems(changed func()) *problems {
	return &problems{changed: changed, refused: map[string]refusal{}}
}

// setSource sets why the source cannot be read, or "".
func (p *problems) setSource(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.source = message
	p.changed()
}

// setContent sets the problems of what was read.
func (p *problems) setContent(problems []source.Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.source, p.content = "", problems
	p.changed()
}

// refusal returns why the write of a Pod was refused, or nil if it was not or is to be tried
// again.
func (p *problems) refusal(name, hash string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.refused[name]; r.hash == hash {
		return r.err
	}
	return nil
}

func (p *problems) refuse(name string, pod *desiredPod, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused[name] = refusal{hash: pod.hash(), err: err, problem: source.Problem{File: pod.file, Pod: pod.name, Message: message(err)}}
	p.changed()
}

// fail adds the problem of a Pod whose write keeps failing, and is tried again. The first
// reason stays: others can differ each time, as those of connections do.
func (p *problems) fail(name string, problem source.Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, known := p.refused[name]; !known || r.err != nil {
		p.refused[name] = refusal{problem: problem}
		p.changed()
	}
}

// resolveFailure removes what fail has added.
func (p *problems) resolveFailure(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, known := p.refused[name]; known && r.err == nil {
		delete(p.refused, name)
		p.changed()
	}
}

func (p *problems) resolvePod(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, refused := p.refused[name]; refused {
		delete(p.refused, name)
		p.changed()
	}
}

// retryPod allows the write of a Pod that was refused to be tried again. It is a problem
// until that succeeds.
func (p *problems) retryPod(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, refused := p.refused[name]; refused {
		r.hash = ""
		p.refused[name] = r
	}
}

// refusedNames returns the names in the API of the Pods that were refused.
func (p *problems) refusedNames() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.refused))
}

// list returns the problems, in order.
func (p *problems) list() []source.Problem {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := slices.Clone(p.content)
	for _, r := range p.refused {
		list = append(list, r.problem)
	}
	slices.SortFunc(list, func(a, b source.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Pod, b.Pod))
	})
	if p.source != "" {
		list = append([]source.Problem{{Message: p.source}}, list...)
	}
	return list
}
