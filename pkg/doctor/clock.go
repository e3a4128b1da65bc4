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

// maxSkew is how far apart clocks may be: the leeway that validators of tokens
// commonly allow for. Certificates are made with more.
const maxSkew = time.Minute

// clock is how far ahead of ours another clock is: somewhere between the two
// values. The zero clock has not been read.
type clock struct {
	name        string
	least, most time.Duration
	read        bool
}

// readClock reads a Date header, which is cut to seconds and was written between
// the two times.
func readClock(header string, sent, received time.Time) clock {
	date, err := http.ParseTime(header)
	if err != nil {
		return clock{}
	}
	return clock{least: date.Sub(received), most: date.Add(time.Second).Sub(sent), read: true}
}

// ahead is the smallest difference, by its amount, that explains how far ahead
// of another clock this one seems to be.
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

// now is what the host's clock says.
func (x *examination) now() time.Time {
	return time.Now().Add(x.hostClock.ahead(clock{}))
}

func (x *examination) checkClocks(context.Context) Finding {
	return compareClocks(x.hostClock, x.clocks)
}

func compareClocks(host clock, servers []clock) Finding {
	if !host.read {
		return skipped("the host's answers carry no date")
	}
	var wrong []string
	cures := map[bool]string{
		true:  "let the machine that this runs on set its clock by NTP",
		false: "let the nodes of the host cluster set their clocks by NTP: certificates and tokens are refused by who thinks that they are old or not yet good",
	}
	var most time.Duration
	cure := ""
	// Ours comes last, for a server that is wrong matters more.
	for _, c := range slices.Concat(servers, []clock{{name: "this machine", read: true}}) {
		if !c.read {
			continue
		}
		ahead := c.ahead(host)
		most = max(most, ahead.Abs())
		if ahead.Abs() <= maxSkew {
			continue
		}
		direction := "ahead of"
		if ahead < 0 {
			direction = "behind"
		}
		wrong = append(wrong, fmt.Sprintf("the clock of %s is %s %s the host's", c.name, ahead.Abs().Round(time.Second), direction))
		if cure == "" {
			cure = cures[c.name == "this machine"]
		}
	}
	switch {
	case len(wrong) > 0:
		return fault(strings.Join(wrong, ", "), cure)
	case len(servers) == 0:
		return ok("the host's and ours are %s; no server could be asked", apart(most))
	}
	return ok("the host's, the servers' and ours are %s", apart(most))
}

func apart(skew time.Duration) string {
	if skew.Round(time.Second) == 0 {
		return "the same"
	}
	return fmt.Sprintf("no more than %s apart", skew.Round(time.Second))
}
