// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

const (
	// maxEncoded is the maximum number of quotas in encodedQuotas.
	maxEncoded = 1 << 8
	// maxEncodedSize is the size in bytes of the largest of them.
	maxEncodedSize = 16 << 10
)

// encodedQuotas are the quotas that this server has just encoded to write them, by their
// encoded form. Each write that is charged writes a quota. If the watch cache decoded it,
// that would cost about what computing it costs, and its versions would share no memory.
type encodedQuotas struct {
	mu     sync.Mutex
	quotas map[string]*tenancy.ResourceQuota
	// ring has the keys of quotas, the oldest at next.
	ring [maxEncoded]string
	next int
}

// add adds a quota, which must not be modified afterwards, unless it is too large.
func (e *encodedQuotas) add(encoded []byte, q *tenancy.ResourceQuota) {
	if len(encoded) > maxEncodedSize {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.quotas == nil {
		e.quotas = make(map[string]*tenancy.ResourceQuota, maxEncoded)
	}
	key := string(encoded)
	delete(e.quotas, e.ring[e.next])
	e.quotas[key], e.ring[e.next] = q, key
	e.next = (e.next + 1) % maxEncoded
}

// take removes a quota and returns it, or nil if there is none.
func (e *encodedQuotas) take(encoded []byte) *tenancy.ResourceQuota {
	e.mu.Lock()
	defer e.mu.Unlock()
	q := e.quotas[string(encoded)]
	delete(e.quotas, string(encoded))
	return q
}

// Decoded returns the quota with an encoded form if this server has just encoded it, or
// nil, and at the next call nil. It shares memory with other quotas: only fields of its
// metadata may be set.
func (c *Charger) Decoded(encoded []byte) runtime.Object {
	q := c.encoded.take(encoded)
	if q == nil {
		return nil
	}
	shared := *q
	return &shared
}
