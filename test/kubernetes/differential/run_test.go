// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/borough-io/borough/test/kubernetes/differential/sites"
)

// runner runs scenarios on both sites.
type runner struct {
	kube, borough *sender
	namespaces    atomic.Int64 // number of names given out
	requests      atomic.Int64 // number sent to each site
	accepted      atomic.Int64 // number of those that succeeded
}

func newRunner(pair *sites.Pair) (*runner, error) {
	kube, err := newSender(&pair.Kubernetes)
	if err != nil {
		return nil, err
	}
	borough, err := newSender(&pair.Borough)
	return &runner{kube: kube, borough: borough}, err
}

// makeNamespace is the request before the first step of most scenarios.
var makeNamespace = step{Do: "POST namespaces", Body: object{"metadata": object{"name": "$ns"}}}

// newNamespace returns an unused name.
func (r *runner) newNamespace() string { return fmt.Sprintf("ns-%d", r.namespaces.Add(1)) }

// run returns the first step of the scenario whose responses differ, or nil. If
// the first step fails, the scenario ends there.
func (r *runner) run(ctx context.Context, s scenario) (*mismatch, error) {
	namespace := r.newNamespace()
	kube, borough := r.kube.visit(namespace), r.borough.visit(namespace)
	steps, first := s.Steps, 0
	var last *exchange
	if !s.ownsNamespace() {
		steps = append([]step{makeNamespace}, steps...)
		first = 1
	}
	for i, step := range steps {
		r.requests.Add(1)
		var kubeAnswer, boroughAnswer answer
		var kubeErr, boroughErr error
		var asking sync.WaitGroup
		asking.Go(func() { kubeAnswer, kubeErr = kube.do(ctx, step) })
		asking.Go(func() { boroughAnswer, boroughErr = borough.do(ctx, step) })
		asking.Wait()
		if kubeErr != nil {
			return nil, kubeErr
		}
		if boroughErr != nil {
			return nil, boroughErr
		}
		x := &exchange{step: step, after: last, kube: new(kube.fold(kubeAnswer)), borough: new(borough.fold(boroughAnswer))}
		if found := compare(x); found != nil {
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
