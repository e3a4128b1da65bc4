// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"sync"
)

// anywhere stands for all namespaces. It is the name of none.
const anywhere = "*"

// changed signals changes of a policy to those who depend on some of it.
type changed struct {
	mu sync.Mutex
	// in has a channel for each namespace that one has asked for since it last changed.
	in map[string]chan struct{}
}

// channel returns the channel that notify closes when the policy changes of the cluster, or
// in one of the namespaces.
func (c *changed) channel(namespaces []string) <-chan struct{} {
	key := ""
	for _, namespace := range namespaces {
		switch {
		case namespace == "" || namespace == key:
		case key == "":
			key = namespace
		default:
			key = anywhere
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in[key] == nil {
		if c.in == nil {
			c.in = map[string]chan struct{}{}
		}
		c.in[key] = make(chan struct{})
	}
	return c.in[key]
}

// notify signals a change in namespaces. One without a namespace concerns all.
func (c *changed) notify(namespaces ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(namespaces, "") {
		for _, channel := range c.in {
			close(channel)
		}
		c.in = nil
		return
	}
	for _, namespace := range append(namespaces, anywhere) {
		if channel := c.in[namespace]; channel != nil {
			close(channel)
			delete(c.in, namespace)
		}
	}
}
