// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/watch"
)

// maxRecent is the number of deliveries to describe when the test fails.
const maxRecent = 10

// client checks what one client of a user gets.
type client struct {
	view     *view
	recorder *recorder
	streams  map[*exchange]*stream
	pages    pages
	replay   replay
	tolerant func() bool // whether requests may fail because of faults

	// recent describes the last deliveries.
	recent []string

	// Counts of what was delivered.
	lists, resumed, events, expired, failed int
}

func newClient(v *view, floor func() int64, tolerant func() bool) *client {
	return &client{
		view:     v,
		recorder: &recorder{floor: floor},
		streams:  map[*exchange]*stream{},
		pages:    pages{view: v, continued: map[string]page{}},
		replay:   replay{objects: map[string]object{}},
		tolerant: tolerant,
	}
}

// wrap is for rest.Config.Wrap.
func (c *client) wrap(next http.RoundTripper) http.RoundTripper {
	c.recorder.next = next
	return c.recorder
}

// verifyAll checks all that was delivered to the clients since the last call.
func verifyAll(ctx context.Context, h *history, clients []*client) error {
	taken := make([][]delivery, len(clients))
	for i, c := range clients {
		taken[i] = c.recorder.take()
	}
	if err := h.read(ctx); err != nil { // up to the present, so it has all of it
		return err
	}
	var errs []error
	for i, c := range clients {
		for _, d := range taken[i] {
			if err := c.verify(d, h.revision); err != nil {
				errs = append(errs, fmt.Errorf("%s, selector %q: %s: %w", c.view.name, c.view.selector, d.request, err))
			}
		}
	}
	return errors.Join(errs...)
}

// verify checks what was delivered. The history has been read up to the revision.
func (c *client) verify(d delivery, revision int64) error {
	if d.ended || len(d.frames) > 0 {
		c.recent = append(c.recent, fmt.Sprintf("until %d: %s: code %d, %d events, ended: %t", revision, d.request, d.code, len(d.frames), d.ended))
		c.recent = c.recent[max(0, len(c.recent)-maxRecent):]
	}
	switch {
	case d.broken != nil:
		return d.broken
	case d.code == 0:
		return nil
	case d.code != http.StatusOK:
		if !d.ended {
			return nil
		}
		return c.verifyError(d.code, d.status)
	case d.request.isWatch():
		return c.verifyWatch(d, revision)
	case d.list == nil:
		return nil // it is not complete
	}
	c.lists++
	c.replay.list(d.list)
	return c.pages.check(d)
}

func (c *client) verifyWatch(d delivery, revision int64) error {
	s := c.streams[d.request]
	if s == nil {
		var err error
		if s, err = newStream(c.view, d.request); err != nil {
			return err
		}
		c.streams[d.request] = s
		c.replay.initial = nil
		if s.initial {
			c.replay.initial = map[string]object{}
		} else {
			c.resumed++
		}
	}
	for _, f := range d.frames {
		if f.kind == watch.Error {
			if err := c.verifyError(f.code, f.message); err != nil {
				return err
			}
			continue
		}
		c.events++
		if err := s.check(f); err != nil {
			return err
		}
		c.replay.apply(f)
	}
	if !d.ended {
		return nil
	}
	delete(c.streams, d.request)
	return s.finish(revision)
}

// verifyError checks the error of a request or a watch. It may have asked for too old a
// revision; it may always see what it may, which can be nothing. Without a fault of the
// test, too, etcd may not answer in time, when its disk is slow, and a server that is held
// up may not reach a revision in time.
func (c *client) verifyError(code int, message string) error {
	switch {
	case code == http.StatusGone:
		c.expired++
		return nil
	case c.tolerant() && (code >= http.StatusInternalServerError || code == http.StatusTooManyRequests),
		strings.Contains(message, "etcdserver: "), strings.Contains(message, "etcd does not answer: "),
		strings.Contains(message, "Too large resource version"):
		c.failed++
		return nil
	}
	return fmt.Errorf("code %d: %s", code, message)
}

// describe describes what was delivered last.
func (c *client) describe() string {
	text := strings.Join(c.recent, "\n")
	for x, s := range c.streams {
		text += fmt.Sprintf("\n%s: open, at %d, missing: %v", x, s.position, s.missing())
	}
	return text
}

// missing returns what the watches that are open have not delivered, or nil.
func (c *client) missing() error {
	for x, s := range c.streams {
		if err := s.missing(); err != nil {
			return fmt.Errorf("%s: %s: %w", c.view.name, x, err)
		}
	}
	return nil
}
