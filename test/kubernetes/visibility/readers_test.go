// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/poll"
)

// read lists the Namespaces as random users, until the round is over.
func (x *exactness) read(ctx context.Context, over <-chan struct{}, r *rand.Rand) error {
	for !poll.IsOver(ctx, over) {
		u := x.users[r.IntN(len(x.users))]
		options := metav1.ListOptions{LabelSelector: u.view.selector.String()}
		switch r.IntN(5) {
		case 0:
			options.ResourceVersion = "0"
		case 1:
			options.ResourceVersion = strconv.FormatInt(x.past(r), 10)
			options.ResourceVersionMatch = metav1.ResourceVersionMatchExact
		case 2:
			options.ResourceVersion = strconv.FormatInt(x.floor.Load(), 10)
			options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		case 3:
			options.Limit = 1 + r.Int64N(3)
		}
		for {
			list, err := u.list(ctx, options)
			if err != nil || list.Continue == "" {
				break // the recorder has the error
			}
			options.Continue = list.Continue
		}
		_ = poll.Sleep(ctx, backoff) // returns early when the round ends
	}
	return nil
}

func (u *user) list(ctx context.Context, options metav1.ListOptions) (*metav1.ListMeta, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := u.namespaces.List(ctx, options)
	if err != nil {
		return nil, err
	}
	return &list.ListMeta, nil
}

// past returns a recent revision.
func (x *exactness) past(r *rand.Rand) int64 { return max(1, x.floor.Load()-r.Int64N(oldest)) }

// probe is a watch of a user from a random revision.
type probe struct {
	client *client
	stop   func()
}

// probe ends the probes of the last round and starts others.
func (x *exactness) probe(t *testing.T, r *rand.Rand) {
	t.Helper()
	for _, p := range x.probes {
		p.stop()
	}
	x.probes = nil
	for range probes {
		u := x.users[r.IntN(len(x.users))]
		c := newClient(u.view, x.floor.Load, x.faulty.Load)
		namespaces := newNamespaces(t, u.config, c)
		options := metav1.ListOptions{
			LabelSelector:       u.view.selector.String(),
			ResourceVersion:     strconv.FormatInt(x.past(r), 10),
			AllowWatchBookmarks: r.IntN(2) > 0,
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			w, err := namespaces.Watch(ctx, options)
			if err != nil {
				return // the recorder has the error
			}
			defer w.Stop()
			for range w.ResultChan() { // until the context ends, or the connection
			}
		})
		x.probes = append(x.probes, &probe{c, func() { cancel(); running.Wait() }})
	}
}
