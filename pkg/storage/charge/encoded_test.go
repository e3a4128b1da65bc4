// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge

import (
	"fmt"
	"testing"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

func TestEncodedQuotas(t *testing.T) {
	quota := func(name string) *tenancy.ResourceQuota {
		q := &tenancy.ResourceQuota{}
		q.Name = name
		return q
	}
	encoded := newEncodedQuotas()
	encoded.add([]byte("a"), quota("a"))
	encoded.add([]byte("b"), quota("b"))
	if q := encoded.take([]byte("a")); q == nil || q.Name != "a" {
		t.Errorf("a is %+v", q)
	}
	if q := encoded.take([]byte("a")); q != nil {
		t.Errorf("a was taken twice")
	}
	large := make([]byte, maxEncodedSize+1)
	encoded.add(large, quota("large"))
	if encoded.take(large) != nil {
		t.Errorf("a quota of %d bytes was added", len(large))
	}
	for i := range maxEncoded {
		encoded.add(fmt.Append(nil, i), quota(fmt.Sprint(i)))
	}
	if encoded.take([]byte("b")) != nil {
		t.Errorf("b is there after %d others", maxEncoded)
	}
	if encoded.take([]byte("0")) == nil {
		t.Errorf("0 is not there after %d others", maxEncoded-1)
	}
}
