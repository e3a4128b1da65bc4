// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"slices"
	"time"
)

const (
	// maxTrusted is how many CAs the caBundle has at most: those of the certificate
	// that is served, of the next one and of the previous one.
	maxTrusted = 3
	// graceShare of a lifetime, and at most graceMax, is how long a CA stays in the
	// caBundle without a certificate in the Secret.
	graceShare = 0.2
	graceMax   = time.Hour
)

// grace is how long other replicas have to notice a change of the Secret.
func (p policy) grace() time.Duration {
	return min(graceMax, time.Duration(graceShare*float64(p.lifetime)))
}

// trust is what this replica has seen in the caBundle.
type trust struct {
	cas []*x509.Certificate
	// since and unused are by raw certificate: since when the CA has been in the
	// caBundle, and since when none of the certificates in the Secret is from it.
	since, unused map[string]time.Time
}

// observe records the CAs that are in the caBundle now.
func (t *trust) observe(cas []*x509.Certificate, now time.Time) {
	since := make(map[string]time.Time, len(cas))
	for _, ca := range cas {
		key := string(ca.Raw)
		if since[key] = t.since[key]; since[key].IsZero() {
			since[key] = now
		}
	}
	t.cas, t.since = cas, since
}

// trustedSince returns since when the caBundle has had the CA, or zero.
func (t *trust) trustedSince(ca *x509.Certificate) time.Time { return t.since[string(ca.Raw)] }

// want returns the CAs that the caBundle has to have if the certificates in the Secret
// are from those that are used, and when that changes, or zero. It keeps the order, so
// that the APIService does not change when only the certificate that is served does.
func (t *trust) want(used []*x509.Certificate, grace time.Duration, now time.Time) (cas []*x509.Certificate, change time.Time) {
	unused, others := map[string]time.Time{}, maxTrusted-len(used)
	for _, ca := range slices.Backward(t.cas) {
		if contains(cas, ca) {
			continue
		}
		if !contains(used, ca) {
			key := string(ca.Raw)
			if unused[key] = t.unused[key]; unused[key].IsZero() {
				unused[key] = now
			}
			until := earliest(unused[key].Add(grace), ca.NotAfter)
			if others == 0 || !now.Before(until) {
				continue
			}
			others--
			change = earliest(change, until)
		}
		cas = append(cas, ca)
	}
	t.unused = unused
	slices.Reverse(cas)
	for _, ca := range used {
		if !contains(cas, ca) {
			cas = append(cas, ca)
		}
	}
	return cas, change
}
