// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxSkew is the largest difference between clocks that is not a fault. Validators
// of tokens commonly allow for this much; certificates are created with more leeway.
const maxSkew = time.Minute

// clock is another clock, which is between least and most ahead of ours. The zero
// clock has not been read.
type clock struct {
	name        string
	least, most time.Duration
	read        bool
}

// readClock reads a clock from a Date header, which is truncated to seconds and was
// written between the two times.
func readClock(header string, sent, received time.Time) clock {
	date, err := http.ParseTime(header)
	if err != nil {
		return clock{}
	}
	return clock{least: date.Sub(received), most: date.Add(time.Second).Sub(sent), read: true}
}

// ahead returns how far this clock is ahead of another one: of the differences that
// the readings allow, the smallest absolute value.
func (c clock) ahead(of clock) time.Duration {
	least, most := c.least-of.most, c.most-of.least
	switch {
	case least > 0:
		return least
	case most < 0:
		return most
	}
	return 0
}

// now returns the time by the clock of kube-apiserver.
func (x *examination) now() time.Time {
	return time.Now().Add(x.clusterClock.ahead(clock{}))
}

func (x *examination) checkClocks(context.Context) Finding {
	return compareClocks(x.clusterClock, x.clocks)
}

func compareClocks(cluster clock, servers []clock) Finding {
	if !cluster.read {
		return skipped("the responses of kube-apiserver have no Date header")
	}
	var wrong []string
	fixes := map[bool]string{
		true:  "synchronize the clock of this machine by NTP",
		false: "synchronize the clocks of the nodes of the cluster by NTP: a process whose clock is wrong rejects certificates and tokens as expired or not yet valid",
	}
	var most time.Duration
	fix := ""
	// This machine last: a wrong clock of a server matters more.
	for _, c := range slices.Concat(servers, []clock{{name: "this machine", read: true}}) {
		if !c.read {
			continue
		}
		ahead := c.ahead(cluster)
		most = max(most, ahead.Abs())
		if ahead.Abs() <= maxSkew {
			continue
		}
		direction := "ahead of"
		if ahead < 0 {
			direction = "behind"
		}
		wrong = append(wrong, fmt.Sprintf("the clock of %s is %s %s that of kube-apiserver", c.name, ahead.Abs().Round(time.Second), direction))
		if fix == "" {
			fix = fixes[c.name == "this machine"]
		}
	}
	switch {
	case len(wrong) > 0:
		return fault(strings.Join(wrong, ", "), fix)
	case len(servers) == 0:
		return ok("those of kube-apiserver and this machine are %s; no server could be checked", apart(most))
	}
	return ok("those of kube-apiserver, the servers and this machine are %s", apart(most))
}

func apart(skew time.Duration) string {
	if skew.Round(time.Second) == 0 {
		return "the same"
	}
	return fmt.Sprintf("at most %s apart", skew.Round(time.Second))
}
