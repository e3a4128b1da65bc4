// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"

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
type encodedQuotas struct{ *lru.Cache }

func newEncodedQuotas() encodedQuotas { return encodedQuotas{lru.New(maxEncoded)} }

// add adds a quota, which must not be modified afterwards, unless it is too large.
func (e encodedQuotas) add(encoded []byte, q *tenancy.ResourceQuota) {
	if len(encoded) <= maxEncodedSize {
		e.Add(string(encoded), q)
	}
}

// take removes a quota and returns it, or nil if there is none.
func (e encodedQuotas) take(encoded []byte) *tenancy.ResourceQuota {
	key := string(encoded)
	q, ok := e.Get(key)
	if !ok {
		return nil
	}
	e.Remove(key)
	return q.(*tenancy.ResourceQuota)
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
