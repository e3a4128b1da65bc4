// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/http"
	"testing"
	"time"
)

// TestReadClock checks that a reading includes the actual difference, and that
// ahead does not exceed it.
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
		// The header may be written at any time between sending and receiving.
		for _, at := range []time.Duration{0, tc.took / 2, tc.took} {
			header := sent.Add(at + tc.ahead).Format(http.TimeFormat)
			c := readClock(header, sent, sent.Add(tc.took))
			if !c.read || c.least > tc.ahead || c.most < tc.ahead {
				t.Errorf("%+v: read %+v, which does not include the actual difference", tc, c)
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
		cluster clock
		servers []clock
		status  Status
		message string
	}{
		{"unread", clock{}, nil, Skipped, "the responses of kube-apiserver have no Date header"},
		{"no servers", at("", 0), nil, OK, "those of kube-apiserver and this machine are the same; no server could be checked"},
		{"same", at("", 0), []clock{at("a", 0)}, OK, "those of kube-apiserver, the servers and this machine are the same"},
		{"within the leeway", at("", 0), []clock{at("a", maxSkew)}, OK, "those of kube-apiserver, the servers and this machine are at most 59s apart"},
		{"beyond the leeway", at("", 0), []clock{at("a", maxSkew+2*time.Second)}, Fault, "the clock of a is 1m1s ahead of that of kube-apiserver"},
		{"one of two, and one not read", at("", 0), []clock{{name: "c"}, at("a", 0), at("b", -time.Hour)}, Fault, "the clock of b is 59m59s behind that of kube-apiserver"},
		{"this machine", at("", time.Hour), []clock{at("a", time.Hour)}, Fault, "the clock of this machine is 1h0m0s behind that of kube-apiserver"},
	} {
		if got := compareClocks(tc.cluster, tc.servers); got.Status != tc.status || got.Message != tc.message {
			t.Errorf("%s: got %+v, want %s: %s", tc.name, got, tc.status, tc.message)
		}
	}
}
