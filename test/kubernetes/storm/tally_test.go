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

// outcome classifies the result of a request.
type outcome string

const (
	created     outcome = "created"
	updated     outcome = "updated"
	deleted     outcome = "deleted"
	exists      outcome = "exists"       // AlreadyExists
	conflict    outcome = "conflict"     // with another write
	terminating outcome = "terminating"  // denied
	noNamespace outcome = "no namespace" // denied
	noObject    outcome = "no object"
	denied      outcome = "denied"  // by a quota
	resized     outcome = "resized" // a Pod, so it has other requests than are applied
	failed      outcome = "failed"  // error or no response
)

var outcomes = []outcome{created, updated, deleted, exists, conflict, terminating, noNamespace, noObject, denied, resized, failed}

// send sends a request. It returns an error only for the outcome failed.
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
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return denied, result, nil
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "pod updates may not change fields"):
		return resized, result, nil
	case apierrors.IsConflict(err):
		return conflict, result, nil
	default:
		return failed, result, err
	}
}

// tally counts the outcomes of requests and collects the acknowledged writes.
type tally struct {
	mu       sync.Mutex
	counts   map[string]map[outcome]int // by path
	unproven []write
	deleted  []incarnation // unproven
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

// acknowledge records an acknowledged write.
func (t *tally) acknowledge(w write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unproven = append(t.unproven, w)
}

// acknowledgeDelete records an acknowledged delete.
func (t *tally) acknowledgeDelete(object incarnation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deleted = append(t.deleted, object)
}

// takeAcknowledged returns the writes and the deletes that were acknowledged since the
// last call.
func (t *tally) takeAcknowledged() ([]write, []incarnation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	writes, deletes := t.unproven, t.deleted
	t.unproven, t.deleted = nil, nil
	t.proven += len(writes) + len(deletes)
	return writes, deletes
}

// total returns how often requests by paths that create had an outcome.
func (t *tally) total(o outcome) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range paths {
		if p.effect == creates {
			n += t.counts[p.name][o]
		}
	}
	return n
}

// String formats the counts as a table.
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
	_ = w.Flush() // fails only if the underlying writer fails
	return table.String()
}
