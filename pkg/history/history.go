// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history keeps versions of objects. A version is in force from one position
// until another; a position is a place in the order of all changes.
package history

import "sort"

// Lifetime is when a version is in force: from one position on, and before another, which
// is 0 if the version has not ended. Versions embed it.
type Lifetime struct{ From, To int64 }

// At reports whether the version is in force at a position.
func (l *Lifetime) At(position int64) bool {
	return l.From <= position && (l.To == 0 || position < l.To)
}

func (l *Lifetime) lifetime() *Lifetime { return l }

// version is a pointer to a struct that embeds a Lifetime.
type version interface {
	comparable
	lifetime() *Lifetime
}

// Past has the versions of each object before its last one, in their order. The caller
// keeps the last ones, because few objects have any before.
type Past[K comparable, V version] map[K][]V

// Add adds a version, which has ended, that another one follows.
func (p Past[K, V]) Add(key K, v V) { p[key] = append(p[key], v) }

// At returns the version of an object that is in force at a position, or nil. The last
// version may be nil.
func (p Past[K, V]) At(key K, last V, position int64) V {
	var none V
	v := last
	if v != none && v.lifetime().From > position {
		past := p[key]
		later := sort.Search(len(past), func(i int) bool { return past[i].lifetime().From > position })
		if later == 0 {
			return none
		}
		v = past[later-1]
	}
	if v == none || !v.lifetime().At(position) {
		return none
	}
	return v
}

// Trim removes the versions of an object that have ended at a position or before. It
// reports whether the last version, which may be nil, is one of them.
func (p Past[K, V]) Trim(key K, last V, position int64) bool {
	var none V
	past := p[key]
	for len(past) > 0 && past[0].lifetime().To <= position {
		past[0] = none // it would stay in the array
		past = past[1:]
	}
	if len(past) > 0 {
		p[key] = past
		return false
	}
	delete(p, key)
	return last != none && last.lifetime().To != 0 && last.lifetime().To <= position
}
