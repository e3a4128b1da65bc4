// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/http"
	"testing"
	"time"
)

// TestReadClock: a clock that is that far ahead is never said to be farther.
func TestReadClock(t *testing.T) {
	sent := time.Date(2026, 1, 2, 3, 4, 5, 6e8, time.UTC)
	for _, tc := range []struct{ ahead, took, least, most time.Duration }{
		{0, 0, 0, 0},
		{0, 3 * time.Second, 0, 0},
		{time.Minute, 0, 59 * time.Second, time.Minute},
		{time.Minute, 10 * time.Second, 49 * time.Second, time.Minute},
		{-time.Minute, 0, -time.Minute, -59 * time.Second},
		{-time.Minute, 10 * time.Second, -time.Minute, -49 * time.Second},
	} {
		// Written anywhere between sending and receiving.
		for _, at := range []time.Duration{0, tc.took / 2, tc.took} {
			header := sent.Add(at + tc.ahead).Format(http.TimeFormat)
			c := readClock(header, sent, sent.Add(tc.took))
			if !c.read || c.least > tc.ahead || c.most < tc.ahead {
				t.Errorf("%+v: read %+v, which leaves out the truth", tc, c)
			}
			if got := c.ahead(clock{}); got < tc.least || got > tc.most {
				t.Errorf("%+v: got %s", tc, got)
			}
		}
	}
	for _, header := range []string{"", "yesterday"} {
		if c := readClock(header, sent, sent); c.read {
			t.Errorf("%q: read %+v", header, c)
		}
	}
}

func TestCompareClocks(t *testing.T) {
	at := func(name string, ahead time.Duration) clock { return clock{name, ahead, ahead + time.Second, true} }
	for _, tc := range []struct {
		name    string
		host    clock
		servers []clock
		status  Status
		message string
	}{
		{"unread", clock{}, nil, Skipped, "the host's answers carry no date"},
		{"alone", at("", 0), nil, OK, "the host's and ours are the same; no server could be asked"},
		{"same", at("", 0), []clock{at("a", 0)}, OK, "the host's, the servers' and ours are the same"},
		{"within the leeway", at("", 0), []clock{at("a", maxSkew)}, OK, "the host's, the servers' and ours are no more than 59s apart"},
		{"beyond it", at("", 0), []clock{at("a", maxSkew+2*time.Second)}, Fault, "the clock of a is 1m1s ahead of the host's"},
		{"one of two, and unread", at("", 0), []clock{{name: "c"}, at("a", 0), at("b", -time.Hour)}, Fault, "the clock of b is 59m59s behind the host's"},
		{"ours", at("", time.Hour), []clock{at("a", time.Hour)}, Fault, "the clock of this machine is 1h0m0s behind the host's"},
	} {
		if got := compareClocks(tc.host, tc.servers); got.Status != tc.status || got.Message != tc.message {
			t.Errorf("%s: got %+v, want %s: %s", tc.name, got, tc.status, tc.message)
		}
	}
}
