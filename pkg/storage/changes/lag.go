// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"errors"
	"time"

	"github.com/borough-io/borough/pkg/storage/internal/unanswered"
)

const (
	// lagInterval is how often a feed that callers wait for is compared with etcd, and how long
	// it may then take to make progress. Requests wait for a revision for 3 seconds.
	lagInterval = time.Second
	// unawaitedLagInterval is how often a feed is compared that no caller waits for. What it
	// sends can end watches, and rights.
	unawaitedLagInterval = 5 * time.Second
)

// errLag ends a watch of a member of etcd that does not send what the others have.
var errLag = errors.New("the member of etcd does not send what the others have")

// lag finds a member of etcd that still answers but does not apply what the others have
// written: its disk hangs, or it is being defragmented. Neither the member nor etcd's client
// ends the watch then.
type lag struct {
	feed      *Feed
	ticker    *time.Ticker
	confirmed chan int64 // a revision of etcd
	asking    bool
	asked     time.Time // the last time
	revision  int64     // that etcd has confirmed, or 0
	reached   int64     // when etcd was asked
}

func newLag(f *Feed) *lag {
	return &lag{feed: f, asked: time.Now(), ticker: time.NewTicker(lagInterval), confirmed: make(chan int64, 1)}
}

func (l *lag) stop() { l.ticker.Stop() }

// exists reports whether the feed has made no progress to the confirmed revision.
func (l *lag) exists() bool {
	reached := l.feed.reached.Get()
	return reached < l.revision && reached == l.reached
}

// ask asks etcd for its revision if callers wait, who may wait for one that etcd does not have,
// or if it has not been asked for a while.
func (l *lag) ask(ctx context.Context) {
	if l.asking || l.feed.waiting.Load() == 0 && time.Since(l.asked) < unawaitedLagInterval {
		return
	}
	l.asking, l.asked, l.reached, l.revision = true, time.Now(), l.feed.reached.Get(), 0
	go func() {
		// The member that is asked may be the one that lags.
		ctx, cancel := context.WithTimeout(ctx, lagInterval)
		defer cancel()
		revision, err := unanswered.Hedge(ctx, lagInterval/2, l.feed.currentOfAny)
		if err != nil {
			revision = 0 // the reason may be all of etcd
		}
		l.confirmed <- revision
	}()
}

// set gives the feed time to reach the confirmed revision.
func (l *lag) set(ctx context.Context, revision int64) {
	l.asking, l.revision = false, revision
	if l.feed.reached.Get() < revision {
		l.feed.requestProgress(ctx)
	}
	l.ticker.Reset(lagInterval)
}
