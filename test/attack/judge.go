// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
)

// How much more than an ordinary request of its size a request may cost. What
// the server does at the same time (etcd, informers, the reading of the counters) is
// within the first; the second is for what an ordinary request does not have.
const (
	// noise is what a request may cost however small it is: a JSON patch may copy
	// 1.5 MiB (requestlimits.MaxPatchCopyBytes).
	noiseBytes, noiseObjects, noiseLog, noiseCPU = 32 << 20, 100_000, 16 << 10, 2.0
	// excess is the multiple of an ordinary request.
	excess, excessCPU = 4, 20
	// The body of a refused request is not decoded: each byte costs no more than
	// it takes to receive it.
	refusedBytes = 16
	// hangupCPU is how many seconds the server may run for a request whose client
	// hangs up, until it is idle again.
	hangupCPU = 1.0
	// An answer may quote what was sent, and a log line may, with escapes.
	answerNoise, answerExcess = 1 << 20, 4
	logExcess                 = 8
)

// line is a cost that grows with the size of a request.
type line struct{ base, slope float64 }

func (l line) at(size int) float64 { return l.base + l.slope*float64(size) }

// bounds are what a request may cost.
type bounds struct{ bytes, objects, cpu line }

// measured are the sizes, in containers, of the ordinary requests from which the
// bounds are made.
var measured = []int{1, 500}

// calibrate measures ordinary requests.
func (r *run) calibrate(ctx context.Context) error {
	var size []int
	var cost []Counters
	for _, containers := range measured {
		request := ordinary(r.paths, containers)
		var least Counters
		// The first requests fill caches, and a collection may fall into another.
		for try := range 5 {
			got, a, err := r.cost(ctx, r.Roles[0], request)
			if err != nil {
				return err
			}
			if a.err != nil || a.code != http.StatusCreated {
				return fmt.Errorf("an ordinary request (%s) failed: %d %s %v", request, a.code, a.text, a.err)
			}
			if try == 0 || got.Bytes < least.Bytes {
				least = got
			}
		}
		size, cost = append(size, request.size()), append(cost, least)
	}
	slope := func(of func(Counters) float64, noise, excess float64) line {
		small, large := max(0, of(cost[0])), of(cost[1])
		return line{noise + excess*small, excess * max(0, (large-small)/float64(size[1]-size[0]))}
	}
	r.bounds = bounds{
		bytes:   slope(func(c Counters) float64 { return c.Bytes }, noiseBytes, excess),
		objects: slope(func(c Counters) float64 { return c.Objects }, noiseObjects, excess),
		cpu:     slope(func(c Counters) float64 { return c.CPU }, noiseCPU, excessCPU),
	}
	r.Report.Bounds = fmt.Sprintf("a request of N bytes may allocate %.0f+%.0fN bytes in %.0f+%.1fN objects",
		r.bounds.bytes.base, r.bounds.bytes.slope, r.bounds.objects.base, r.bounds.objects.slope)
	if r.CPU {
		r.Report.Bounds += fmt.Sprintf(", and run for %.1f+%.6fN seconds", r.bounds.cpu.base, r.bounds.cpu.slope)
	}
	return nil
}

// recount is after how many requests the cost of reading the counters is
// measured again: the server has more metrics the longer it runs.
const recount = 50

// cost sends a request and returns what the server did for it.
func (r *run) cost(ctx context.Context, role Role, request Request) (Counters, answer, error) {
	if r.counted%recount == 0 {
		before, err := r.Server.count(ctx)
		if err != nil {
			return Counters{}, answer{}, err
		}
		if r.last, err = r.Server.count(ctx); err != nil {
			return Counters{}, answer{}, err
		}
		r.counting = r.last.minus(before)
	}
	r.counted++
	a := role.send(ctx, request)
	after, err := r.Server.count(ctx)
	if request.Hangup && err == nil {
		after, err = r.Server.rest(ctx, after)
	}
	if err != nil {
		return Counters{}, a, err
	}
	before := r.last
	r.last = after
	return after.minus(before).minus(r.counting), a, nil
}

// judgeAnswer returns what is wrong with an answer, empty if nothing is.
func judgeAnswer(role Role, request Request, a answer) string {
	switch code := a.code; {
	case a.err != nil && request.Malformed:
		return ""
	case a.err != nil:
		return fmt.Sprintf("no answer: %v", a.err)
	case code >= 500 && !slices.Contains(request.Allowed, code):
		return fmt.Sprintf("the answer is %d: %s", code, a.text)
	case code/100 != 2:
		return ""
	case role.Unauthenticated:
		return fmt.Sprintf("the answer to an unauthenticated client is %d: %s", code, a.text)
	case !role.mayWrite(request) && slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, request.Method):
		return fmt.Sprintf("the answer to a role that may not write is %d: %s", code, a.text)
	}
	return ""
}

// judgeCost returns by how much a request is above its nearest bound (1 is just
// at it), and what is above.
func (r *run) judgeCost(role Role, request Request, a answer, c Counters) (share float64, what string) {
	size := request.size()
	bytes, objects := r.bounds.bytes.at(size), r.bounds.objects.at(size)
	if role.Unauthenticated {
		head := size - len(request.Body)
		bytes = r.bounds.bytes.at(head) + refusedBytes*float64(len(request.Body))
		objects = r.bounds.objects.at(head)
	}
	cpu := r.bounds.cpu.at(size)
	if request.Hangup {
		cpu = hangupCPU
	}
	var above []string
	for _, is := range []struct {
		of        string
		got, most float64
	}{
		{"bytes allocated", c.Bytes, bytes},
		{"objects allocated", c.Objects, objects},
		{"bytes in the log", c.Log, noiseLog + logExcess*float64(size)},
		{"bytes in the answer", float64(a.size), answerNoise + answerExcess*float64(size)},
		{"seconds of CPU", c.CPU, cpu},
	} {
		if is.of == "seconds of CPU" && !r.CPU || is.of == "bytes in the answer" && request.Method == http.MethodGet {
			continue
		}
		share = math.Max(share, is.got/is.most)
		if is.got > is.most {
			above = append(above, fmt.Sprintf("%.6g %s, at most %.6g", is.got, is.of, is.most))
		}
	}
	return share, strings.Join(above, "; ")
}
