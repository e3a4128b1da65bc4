// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"hash/fnv"
	"slices"
	"sync"
)

// changed signals changes of a policy to those who depend on some of it.
type changed struct {
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
func (c *changed) channel(namespaces []string) <-chan struct{} {
	channel, only := &c.cluster, ""
	for _, namespace := range namespaces {
		switch {
		case namespace == "" || namespace == only:
		case only == "":
			channel, only = &c.in[shardOf(namespace)], namespace
		default:
			channel = &c.anywhere
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if *channel == nil {
		*channel = make(chan struct{})
	}
	return *channel
}

// notify signals a change in namespaces. One without a namespace concerns all.
func (c *changed) notify(namespaces ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	signal := func(channel *chan struct{}) {
		if *channel != nil {
			close(*channel)
			*channel = nil
		}
	}
	signal(&c.anywhere)
	if slices.Contains(namespaces, "") {
		signal(&c.cluster)
		for i := range c.in {
			signal(&c.in[i])
		}
		return
	}
	for _, namespace := range namespaces {
		signal(&c.in[shardOf(namespace)])
	}
}
