// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/watch"
)

// stream checks one watch against the view of its user.
//
// What a watch from a revision delivers is exactly determined, but for the order of
// events of the same revision: the changes of the view after that revision, without a
// gap. So its position is known after each event, also if the resourceVersion of an
// ADDED is older: the Namespace then came into view by a grant at the position. No event
// has a resourceVersion behind which changes are missing, so that a client that is cut
// off there can continue. What remains open is where a watch with initial events starts. It must be at a revision
// that the request allows, and is determined by what follows.
type stream struct {
	view      *view
	bookmarks bool // the client wants them

	// A watch with initial events collects frames until the closing bookmark.
	initial bool
	oldest  int64 // the earliest revision at which it may start
	begun   []frame

	position int64
	next     int      // the next change of the view
	pending  []change // the changes at the position that are not delivered
	// owed is the revision of the bookmark that has to follow at once, or 0.
	owed int64
}

// newStream returns the check of a watch.
func newStream(v *view, x *exchange) (*stream, error) {
	from, err := oldestOf(x)
	if err != nil {
		return nil, err
	}
	s := &stream{view: v, bookmarks: x.query.Get("allowWatchBookmarks") == "true"}
	if x.query.Get("sendInitialEvents") == "true" {
		s.initial, s.oldest = true, from
	} else {
		s.start(from)
	}
	return s, nil
}

// oldestOf returns the oldest revision that may be served to a request.
func oldestOf(x *exchange) (int64, error) {
	switch version := x.query.Get("resourceVersion"); version {
	case "":
		return x.floor, nil // the request is for the most recent state
	default:
		return strconv.ParseInt(version, 10, 64)
	}
}

func (s *stream) start(from int64) { s.position, s.next = from, s.view.after(from) }

// check checks the next frame.
func (s *stream) check(f frame) error {
	if s.initial {
		s.begun = append(s.begun, f)
		if f.initialEnd {
			s.initial = false
			return s.checkInitial(f.object.revision)
		}
		return nil
	}
	if f.initialEnd {
		return errors.New("a second bookmark closes the initial events")
	}
	return s.advance(f, true)
}

// advance checks a frame at the position. Strict is whether the bookmark after a grant
// must follow.
func (s *stream) advance(f frame, strict bool) error {
	if owed := s.owed; strict && owed != 0 {
		if f.kind != watch.Bookmark || f.object.revision != owed {
			return fmt.Errorf("%s, want the bookmark at %d after a grant", f, owed)
		}
	}
	s.owed = 0
	if f.kind == watch.Bookmark {
		return s.bookmark(f.object.revision)
	}
	s.fill()
	last := len(s.pending) == 1
	i := slices.IndexFunc(s.pending, func(c change) bool { return c.event(last) == f.event })
	if i < 0 {
		return fmt.Errorf("at %d: %s, want one of %s", s.position, f, describe(s.pending))
	}
	if !last && f.object.revision == s.pending[i].revision {
		return fmt.Errorf("at %d: %s, before all events of this revision: %s", s.position, f, describe(s.pending))
	}
	grant := s.pending[i].isGrant()
	s.position = s.pending[i].revision
	s.pending = slices.Delete(s.pending, i, i+1)
	if s.bookmarks && grant && len(s.pending) == 0 {
		s.owed = s.position
	}
	return nil
}

// fill sets pending to the changes at the next revision that has some, unless changes
// of the present one are missing.
func (s *stream) fill() {
	if len(s.pending) > 0 {
		return
	}
	changes := s.view.changes
	for ; s.next < len(changes) && (len(s.pending) == 0 || changes[s.next].revision == s.pending[0].revision); s.next++ {
		s.pending = append(s.pending, changes[s.next])
	}
}

func (s *stream) bookmark(revision int64) error {
	if revision < s.position {
		return fmt.Errorf("a bookmark at %d, after the stream has reached %d", revision, s.position)
	}
	s.fill()
	if len(s.pending) > 0 && s.pending[0].revision <= revision {
		return fmt.Errorf("a bookmark at %d, before %s", revision, describe(s.pending))
	}
	s.position = revision
	return nil
}

// checkInitial finds where the stream has started, so that it is at the revision after
// all frames. Without a revision it may be anywhere.
func (s *stream) checkInitial(revision int64) error {
	newest := revision
	if newest == 0 {
		newest = s.position // of the history
	}
	if newest < s.oldest {
		return fmt.Errorf("initial events at %d, the request is for %d or later", newest, s.oldest)
	}
	frames := s.begun
	s.begun = nil
	// The view is the same from one change to the next, so only the revisions of
	// changes have to be tried. The first is the most likely.
	var first error
	for from, next := newest, s.view.after(newest); ; {
		trial := &stream{view: s.view, bookmarks: s.bookmarks}
		err := trial.replayInitial(frames, from, revision == 0)
		if err == nil {
			*s = *trial
			return nil
		}
		first = cmp.Or(first, err)
		if from <= s.oldest || next == 0 {
			return fmt.Errorf("initial events that were seen at no revision from %d to %d: %w", s.oldest, newest, first)
		}
		next--
		// Just before the change.
		from = max(s.view.changes[next].revision-1, s.oldest)
		next = s.view.after(from)
	}
}

// replayInitial checks frames as those of a watch that starts at a revision. If it is
// partial, it may have ended at any time.
func (s *stream) replayInitial(frames []frame, from int64, partial bool) error {
	want := s.view.at(from)
	if !partial && len(frames) < len(want) {
		return fmt.Errorf("%d events, want %d Namespaces at %d", len(frames), len(want), from)
	}
	n := min(len(frames), len(want))
	for _, f := range frames[:n] {
		seen := want[f.object.name]
		if f.kind != watch.Added || seen == nil || f.object != (object{f.object.name, seen.uid, seen.revision, seen.content}) {
			return fmt.Errorf("%s, want one of %v as at %d", f, objects(want), from)
		}
		delete(want, f.object.name)
	}
	s.start(from)
	for _, f := range frames[n:] {
		if err := s.advance(f, false); err != nil {
			return err
		}
	}
	s.owed = 0
	return nil
}

// finish checks what was delivered of a watch that ended among its initial events. The
// history has been read up to the revision.
func (s *stream) finish(revision int64) error {
	if !s.initial || len(s.begun) == 0 {
		return nil
	}
	s.initial, s.position = false, revision
	return s.checkInitial(0)
}

// missing returns what the watch has not delivered yet, or nil.
func (s *stream) missing() error {
	s2 := *s
	s2.pending = slices.Clone(s.pending)
	s2.fill()
	switch {
	case s.initial:
		return errors.New("the initial events have not ended")
	case len(s2.pending) > 0:
		return fmt.Errorf("%s is not delivered", describe(s2.pending))
	case s.owed != 0:
		return fmt.Errorf("the bookmark at %d after a grant is not delivered", s.owed)
	}
	return nil
}

// pages checks lists against the view of their user, which is exactly determined by
// their resourceVersion.
type pages struct {
	view *view
	// continued has, for each token, the revision of the list and how many objects are
	// before it.
	continued map[string]page
}

type page struct {
	revision int64
	offset   int
}

func (p *pages) check(d delivery) error {
	x, list := d.request, d.list
	oldest, err := oldestOf(x)
	if err != nil {
		return err
	}
	var at page
	if token := x.query.Get("continue"); token != "" {
		at = p.continued[token]
		if list.revision != at.revision {
			return fmt.Errorf("a page at %d of a list at %d", list.revision, at.revision)
		}
	} else if at.revision = list.revision; list.revision < oldest || x.query.Get("resourceVersionMatch") == "Exact" && list.revision != oldest {
		return fmt.Errorf("a list at %d, the request is for %d", list.revision, oldest)
	}
	all := objects(p.view.at(list.revision))
	want := all[min(at.offset, len(all)):]
	if n := len(list.objects); list.next != "" && n < len(want) {
		want = want[:n]
	}
	if !slices.Equal(list.objects, want) {
		return fmt.Errorf("a list at %d, from object %d on:\n%v\nwant\n%v", list.revision, at.offset, list.objects, want)
	}
	if list.next != "" {
		p.continued[list.next] = page{list.revision, at.offset + len(list.objects)}
	}
	return nil
}

// replay is the state that a client has by what was delivered to it.
type replay struct {
	objects map[string]object
	// initial are the objects of a watch before the bookmark that closes the initial
	// events.
	initial map[string]object
}

func (r *replay) list(list *listing) {
	r.objects = map[string]object{}
	for _, o := range list.objects {
		r.objects[o.name] = o
	}
}

func (r *replay) apply(f frame) {
	to := r.objects
	if r.initial != nil {
		to = r.initial
	}
	switch {
	case f.initialEnd:
		r.objects, r.initial = r.initial, nil
	case f.kind == watch.Added, f.kind == watch.Modified:
		to[f.object.name] = f.object
	case f.kind == watch.Deleted:
		delete(to, f.object.name)
	}
}

func (r *replay) state() []object {
	return slices.SortedFunc(maps.Values(r.objects), compareObjects)
}

func describe(changes []change) string {
	if len(changes) == 0 {
		return "nothing"
	}
	var events []event
	for _, c := range changes {
		events = append(events, c.event(len(changes) == 1))
	}
	return fmt.Sprintf("%v at %d", events, changes[0].revision)
}
