// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"hash/fnv"
	"slices"
	"sync"
)

// signals notify those who depend on some of a policy of its changes.
type signals struct {
	mu sync.Mutex
	// cluster is for those who depend on what has no namespace alone, anywhere for those who
	// depend on several namespaces, and in for those who depend on one. A channel is nil
	// until one has asked for it since the last change. Namespaces share channels: a signal
	// too many only costs a decision.
	cluster, anywhere chan struct{}
	in                [shards]chan struct{}
}

// shards is how many parts there are of what is kept of the changes in all namespaces.
const shards = 1024

// shardOf returns the part of a namespace.
func shardOf(namespace string) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(namespace))
	return int(hash.Sum32() % shards)
}

// channel returns the channel that notify closes when the policy changes of the cluster, or
// in one of the namespaces.
func (s *signals) channel(namespaces []string) <-chan struct{} {
	channel, only := &s.cluster, ""
	for _, namespace := range namespaces {
		switch {
		case namespace == "" || namespace == only:
		case only == "":
			channel, only = &s.in[shardOf(namespace)], namespace
		default:
			channel = &s.anywhere
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if *channel == nil {
		*channel = make(chan struct{})
	}
	return *channel
}

// notify signals a change in namespaces. One without a namespace concerns all.
func (s *signals) notify(namespaces ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	signal := func(channel *chan struct{}) {
		if *channel != nil {
			close(*channel)
			*channel = nil
		}
	}
	signal(&s.anywhere)
	if slices.Contains(namespaces, "") {
		signal(&s.cluster)
		for i := range s.in {
			signal(&s.in[i])
		}
		return
	}
	for _, namespace := range namespaces {
		signal(&s.in[shardOf(namespace)])
	}
}
