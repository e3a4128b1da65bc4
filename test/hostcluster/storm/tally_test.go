// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// outcome is what came of a request.
type outcome string

const (
	created     outcome = "created"
	updated     outcome = "updated"
	exists      outcome = "exists"       // an object of the name
	conflict    outcome = "conflict"     // with another write
	terminating outcome = "terminating"  // denied
	noNamespace outcome = "no namespace" // denied
	noObject    outcome = "no object"
	failed      outcome = "failed" // or not answered
)

var outcomes = []outcome{created, updated, exists, conflict, terminating, noNamespace, noObject, failed}

// send sends a request. It returns the error of one that failed, and of no
// other outcome.
func send(ctx context.Context, request *rest.Request) (outcome, rest.Result, error) {
	result := request.Do(ctx)
	err := result.Error()
	_, isTerminating := apierrors.StatusCause(err, corev1.NamespaceTerminatingCause)
	switch {
	case err == nil:
		var code int
		if result.StatusCode(&code); code == http.StatusCreated {
			return created, result, nil
		}
		return updated, result, nil
	case isTerminating:
		return terminating, result, nil
	case apierrors.IsNotFound(err):
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces" {
			return noNamespace, result, nil
		}
		return noObject, result, nil
	case apierrors.IsAlreadyExists(err):
		return exists, result, nil
	case apierrors.IsConflict(err):
		return conflict, result, nil
	default:
		return failed, result, err
	}
}

// tally counts what came of requests, and keeps the writes that were
// acknowledged.
type tally struct {
	mu       sync.Mutex
	counts   map[string]map[outcome]int // by path
	unproven []write
	proven   int
}

func newTally() *tally { return &tally{counts: map[string]map[outcome]int{}} }

func (t *tally) count(path string, o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[path] == nil {
		t.counts[path] = map[outcome]int{}
	}
	t.counts[path][o]++
}

// acknowledge takes note that a write was acknowledged.
func (t *tally) acknowledge(w write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unproven = append(t.unproven, w)
}

// prove returns the writes that were acknowledged since it was last called.
func (t *tally) prove() []write {
	t.mu.Lock()
	defer t.mu.Unlock()
	writes := t.unproven
	t.unproven = nil
	t.proven += len(writes)
	return writes
}

// total is how many requests by paths that create had an outcome.
func (t *tally) total(o outcome) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range paths {
		if p.creates {
			n += t.counts[p.name][o]
		}
	}
	return n
}

// String is a table of all counts.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\t")
	for _, o := range outcomes {
		fmt.Fprintf(w, "%s\t", o)
	}
	fmt.Fprintln(w)
	for _, path := range slices.Sorted(maps.Keys(t.counts)) {
		fmt.Fprintf(w, "%s\t", path)
		for _, o := range outcomes {
			fmt.Fprintf(w, "%d\t", t.counts[path][o])
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // fails only when what is below fails
	return table.String()
}
