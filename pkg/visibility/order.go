// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import "sort"

// A position is a place in the one order of all changes that views have. If all are of
// one etcd, it is the revision of etcd. Otherwise an order assigns it.

// order puts the changes of Namespaces, which have revisions of etcd, and those of a
// policy, which have none, into the order in which they are received. Positions are
// those of one process; what clients get and send are revisions.
//
// A revision has several positions if the policy has changed while it was the one that was
// reached. A watch begins at the first, at which a Namespace has changed: so it sends
// changes of the policy that its client may have seen already once more. A list, which
// repeats nothing, is at the last. Both are at the last position at which a user sees the
// same, because the history of the policy can begin after the one at which it has changed.
type order struct {
	// last is the last position. It need not have a mark.
	last  int64
	marks []mark
	// lost is the last mark that was trimmed.
	lost mark
}

// mark is a position at which something has changed for a user.
type mark struct {
	position int64
	// changed is the revision of the last change of a Namespace, or of the reset.
	changed int64
	// reached is the revision up to which there is no other change of a Namespace.
	reached int64
}

// reset begins the order at a revision.
func (o *order) reset(revision int64) {
	o.last++
	o.marks, o.lost = []mark{{o.last, revision, revision}}, mark{}
}

// add adds a position for changes of Namespaces at a revision, or for changes of the
// policy if the revision is 0. The latter may change nothing for any user.
func (o *order) add(revision int64, changed bool) {
	o.last++
	next := o.marks[len(o.marks)-1]
	next.position = o.last
	if revision > 0 {
		next.changed, next.reached = revision, revision
	}
	if changed {
		o.marks = append(o.marks, next)
	}
}

// advance records that no Namespace changes until a revision.
func (o *order) advance(revision int64) {
	if len(o.marks) > 0 {
		o.marks[len(o.marks)-1].reached = revision
	}
}

// trim removes the marks before a position.
func (o *order) trim(position int64) {
	for len(o.marks) > 1 && o.marks[0].position < position {
		o.lost, o.marks = o.marks[0], o.marks[1:]
	}
}

// revision returns the revision that was reached at a position.
func (o *order) revision(position int64) int64 {
	i := sort.Search(len(o.marks), func(i int) bool { return o.marks[i].position > position })
	if i == 0 {
		return o.lost.changed
	}
	return o.marks[i-1].reached
}

// positions returns the first and the last position of a revision, each -1 if it is not
// known any more.
func (o *order) positions(revision int64) (first, last int64) {
	i := sort.Search(len(o.marks), func(i int) bool { return o.marks[i].changed > revision })
	if i == 0 {
		return -1, -1
	}
	changed, last := o.marks[i-1].changed, o.until(i-1)
	if changed != o.lost.changed {
		return o.until(sort.Search(i, func(i int) bool { return o.marks[i].changed >= changed })), last
	}
	// The first is not known any more. A client that has a later revision than was reached
	// then has seen the changes of the policy until it was.
	if revision <= o.lost.reached {
		return -1, last
	}
	return o.until(min(sort.Search(i, func(i int) bool { return o.marks[i].reached >= revision }), i-1)), last
}

// until returns the last position before the next mark.
func (o *order) until(mark int) int64 {
	if mark+1 < len(o.marks) {
		return o.marks[mark+1].position - 1
	}
	return o.last
}

// revisionAt returns the revision of etcd at a position. The lock is held.
func (v *Views) revisionAt(position int64) int64 {
	if v.order == nil {
		return position
	}
	return v.order.revision(position)
}

// positionsOf returns the first and the last position of a revision of etcd that was
// reached, each -1 if it is not in the history. The lock is held.
func (v *Views) positionsOf(revision int64) (first, last int64) {
	if v.order == nil {
		return revision, revision
	}
	return v.order.positions(revision)
}
