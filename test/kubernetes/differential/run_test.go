// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/borough-io/borough/test/kubernetes/differential/sides"
)

// runner runs scenarios on both sides.
type runner struct {
	kube, borough *sender
	prefix        string       // of names
	namespaces    atomic.Int64 // number of names given out
	requests      atomic.Int64 // number sent to each side
	accepted      atomic.Int64 // number of those that succeeded
}

func newRunner(ctx context.Context, pair *sides.Pair) (*runner, error) {
	kube, err := newSender(&pair.Kubernetes)
	if err != nil {
		return nil, err
	}
	borough, err := newSender(&pair.Borough)
	if err != nil {
		return nil, err
	}
	for _, s := range []*sender{kube, borough} {
		if err := s.readBootstrapRules(ctx); err != nil {
			return nil, err
		}
	}
	if err := kube.prepareAwaitQuotas(ctx); err != nil {
		return nil, err
	}
	return &runner{kube: kube, borough: borough, prefix: "ns"}, nil
}

// inOwnGroup returns a runner that uses Borough's own group.
func (r *runner) inOwnGroup(ctx context.Context, pair *sides.Pair) (*runner, error) {
	borough, err := newSender(&pair.OwnGroup)
	if err != nil {
		return nil, err
	}
	if err := borough.readBootstrapRules(ctx); err != nil {
		return nil, err
	}
	return &runner{kube: r.kube, borough: borough, prefix: "own"}, nil
}

// makeNamespace is the request before the first step of most scenarios.
var makeNamespace = step{Do: "POST namespaces", Body: object{"metadata": object{"name": "$ns"}}}

// newNamespace returns an unused name.
func (r *runner) newNamespace() string { return fmt.Sprintf("%s-%d", r.prefix, r.namespaces.Add(1)) }

// run returns the first step of the scenario whose responses differ, or nil. If
// the first step fails, the scenario ends there. A step that settles has the time to do so.
func (r *runner) run(ctx context.Context, s scenario, settle time.Duration) (*mismatch, error) {
	namespace := r.newNamespace()
	kube, borough := r.kube.visit(namespace), r.borough.visit(namespace)
	kube.inOwnGroup = borough.inOwnGroup // so that what a scenario names is equal
	steps, first := s.Steps, 0
	var last *exchange
	if !s.ownsNamespace() {
		steps = append([]step{makeNamespace}, steps...)
		first = 1
	}
	for i, step := range steps {
		r.requests.Add(1)
		x, found, err := ask(ctx, kube, borough, step, last, settle)
		if err != nil {
			return nil, err
		}
		if found != nil {
			found.step = i - first
			return found, nil
		}
		last = x
		if x.kube.Code < 400 {
			r.accepted.Add(1)
		}
		if x.end || i == first && x.kube.Code >= 400 {
			return nil, nil
		}
	}
	return nil, nil
}

// lostUsages bounds how often a scenario is run again because Kubernetes allowed an
// object that exceeds a quota.
const lostUsages = 5

// runAgain runs the scenario, and again if Kubernetes allowed what exceeds a quota. Its
// controller computes a usage from a cache of Pods that can be older than the quota it
// then writes, and so undo what admission charged for the latest Pods. It does so by
// chance; a quota that differs does so each time.
func (r *runner) runAgain(ctx context.Context, s scenario) (*mismatch, error) {
	for attempt := 0; ; attempt++ {
		found, err := r.run(ctx, s, settleTime)
		if err != nil || found == nil || !found.exceedsQuota || attempt == lostUsages {
			return found, err
		}
	}
}

const (
	// settleTime bounds how long a request is repeated until the responses are equal.
	settleTime = 2 * time.Minute
	// otherAnswers bounds how often a request is repeated because Kubernetes named
	// another binding or quota. It iterates over them in random order.
	otherAnswers = 1000
)

// ask sends the request of a step to both sides and compares the responses.
func ask(ctx context.Context, kube, borough *visit, s step, last *exchange, settle time.Duration) (*exchange, *mismatch, error) {
	settled := time.Now().Add(settle)
	for attempt := 0; ; attempt++ {
		var kubeAnswer, boroughAnswer answer
		var kubeErr, boroughErr error
		var asking sync.WaitGroup
		asking.Go(func() { kubeAnswer, kubeErr = kube.do(ctx, s) })
		asking.Go(func() { boroughAnswer, boroughErr = borough.do(ctx, s) })
		asking.Wait()
		err := cmp.Or(kubeErr, boroughErr)
		if err != nil {
			return nil, nil, err
		}
		x := &exchange{step: s, after: last, kube: new(kube.fold(kubeAnswer)), borough: new(borough.fold(boroughAnswer))}
		found := compare(x)
		mayChange := s.Settle && time.Now().Before(settled)
		switch {
		case mayChange && (found != nil || s.Has != "" && x.kube.field(s.Has) == nil):
			time.Sleep(10 * time.Millisecond)
		case found == nil:
			if s.Settle && s.resource() == "resourcequotas" {
				err = kube.awaitQuotas(ctx)
			}
			return x, nil, err
		case (allowedByOthers(x) || refusedByOthers(x)) && attempt < otherAnswers:
		default:
			found.exceedsQuota = x.kube.Code < 400 && strings.Contains(fmt.Sprint(x.borough.field("message")), "exceeded quota: ")
			return x, found, nil
		}
	}
}

// clone returns a copy of decoded JSON.
func clone[T any](value T) T {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // never fails for decoded JSON
	}
	var copied T
	if err := json.Unmarshal(data, &copied); err != nil {
		panic(err)
	}
	return copied
}
