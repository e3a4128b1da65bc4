// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"cmp"
	"slices"

	"github.com/borough-io/borough/pkg/authorization/rbac"
)

// maxPending is how much a watch may be behind before it is ended, and the client has
// to begin another.
const maxPending = 200_000

// item is something to look at for a watch: a Namespace that has changed or that the
// user may see or not see any more, at a position; or without a name all that the user
// sees by ClusterRoleBindings.
type item struct {
	position int64
	name     string
}

// queue is what a watch has to look at. The lock of Views protects it.
type queue struct {
	subjects []rbac.Subject
	// rights are those by ClusterRoleBindings at the position that is reached.
	rights rbac.ClusterRights
	items  []item
	// expired is set when the history was lost, or the queue was too long.
	expired bool
	// wake has a value when items or expired have changed.
	wake chan struct{}
}

func (q *queue) push(i item) {
	if len(q.items) > 0 && q.items[len(q.items)-1] == i {
		return // by another binding
	}
	if len(q.items) >= maxPending {
		q.items, q.expired = nil, true
	}
	if !q.expired {
		q.items = append(q.items, i)
	}
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

type queues map[*queue]struct{}

// watchers are the queues of the watches that are open, arranged so that a change costs
// no more than the watches that it concerns.
type watchers struct {
	all       queues
	bySubject map[rbac.Subject]queues
	// seeingAll and byName have the queues by their rights.
	seeingAll queues
	byName    map[string]queues
}

func newWatchers() watchers {
	return watchers{all: queues{}, bySubject: map[rbac.Subject]queues{}, seeingAll: queues{}, byName: map[string]queues{}}
}

func (w *watchers) add(q *queue) {
	w.all[q] = struct{}{}
	for _, s := range q.subjects {
		addTo(w.bySubject, s, q)
	}
	w.addRights(q)
}

func (w *watchers) remove(q *queue) {
	delete(w.all, q)
	for _, s := range q.subjects {
		removeFrom(w.bySubject, s, q)
	}
	w.removeRights(q)
}

func (w *watchers) addRights(q *queue) {
	if q.rights.All {
		w.seeingAll[q] = struct{}{}
	}
	for _, name := range q.rights.Names {
		addTo(w.byName, name, q)
	}
}

func (w *watchers) removeRights(q *queue) {
	delete(w.seeingAll, q)
	for _, name := range q.rights.Names {
		removeFrom(w.byName, name, q)
	}
}

func addTo[K comparable](m map[K]queues, key K, q *queue) {
	if m[key] == nil {
		m[key] = queues{}
	}
	m[key][q] = struct{}{}
}

func removeFrom[K comparable](m map[K]queues, key K, q *queue) {
	if delete(m[key], q); len(m[key]) == 0 {
		delete(m, key)
	}
}

// notify pushes a change to the queues that it concerns, and possibly to some more.
func (w *watchers) notify(index *rbac.Index, c *change) {
	for _, name := range c.namespaces {
		for q := range w.seeingAll {
			q.push(item{c.position, name})
		}
		for q := range w.byName[name] {
			q.push(item{c.position, name})
		}
		if len(w.all) == len(w.seeingAll) {
			continue
		}
		// Thousands of bindings can be of the same subjects.
		bound := map[rbac.Subject]struct{}{}
		for subject := range index.Bound(name, c.position) {
			if w.bySubject[subject] != nil {
				bound[subject] = struct{}{}
			}
		}
		for subject := range bound {
			for q := range w.bySubject[subject] {
				q.push(item{c.position, name})
			}
		}
	}
	type rights struct {
		namespace string
		subject   rbac.Subject
	}
	notified := map[rights]struct{}{}
	for i := range c.touched {
		touch := &c.touched[i]
		for _, subject := range w.touched(index, touch) {
			changed := rights{touch.Namespace, subject}
			if _, twice := notified[changed]; twice || w.bySubject[subject] == nil {
				continue
			}
			notified[changed] = struct{}{}
			for q := range w.bySubject[subject] {
				q.push(item{c.position, touch.Namespace})
				if touch.Namespace == "" {
					w.removeRights(q)
					q.rights = index.ClusterRights(q.subjects, c.position)
					w.addRights(q)
				}
			}
		}
	}
}

// touched returns the subjects of watches whose rights may have changed, and possibly others.
// It goes through the subjects of the binding or, if these are fewer, of the watches: a small
// change of a Role touches all bindings to it, each of which can have 10,000 subjects.
func (w *watchers) touched(index *rbac.Index, touch *rbac.Touch) (subjects []rbac.Subject) {
	if touch.Subjects() <= len(w.bySubject) {
		return index.Touched(touch)
	}
	for subject := range w.bySubject {
		if index.Touches(touch, []rbac.Subject{subject}) {
			subjects = append(subjects, subject)
		}
	}
	return subjects
}

// expire ends all watches, because their history is lost.
func (w *watchers) expire() {
	for q := range w.all {
		q.items, q.expired = nil, true
		q.signal()
	}
}

// maxPart is how many Namespaces and touches the changes have, except for the last of them,
// that pushPart pushes at once. A change of a Role touches all bindings to it.
const maxPart = 5000

// pushPart pushes what a watch has to look at in the next changes after a position, and
// returns the position of the last of them and whether there are more.
func (v *Views) pushPart(q *queue, position int64) (pushed int64, more bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	changes := v.since(position)
	n := 0
	for size := 0; size < maxPart; n++ {
		if n == len(changes) {
			return position, false
		}
		size += len(changes[n].namespaces) + len(changes[n].touched)
	}
	v.push(q, changes[:n])
	return changes[n-1].position, !q.expired
}

// since returns the changes after a position. The lock is held.
func (v *Views) since(position int64) []change {
	first, _ := slices.BinarySearchFunc(v.history, position+1, func(c change, position int64) int { return cmp.Compare(c.position, position) })
	return v.history[first:]
}

// push pushes what a watch has to look at in changes. The lock is held.
func (v *Views) push(q *queue, changes []change) {
	for _, c := range changes {
		for _, name := range c.namespaces {
			q.push(item{c.position, name})
		}
		for i := range c.touched {
			if v.index.Touches(&c.touched[i], q.subjects) {
				q.push(item{c.position, c.touched[i].Namespace})
			}
		}
		if q.expired {
			return
		}
	}
}
