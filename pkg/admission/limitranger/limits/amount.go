// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"math"
	"math/big"

	"k8s.io/apimachinery/pkg/api/resource"
)

// amount is a quantity that is prepared for comparison.
type amount struct {
	quantity *resource.Quantity
	// precision is the finest precision at which the amount fits into an int64.
	precision precision
	// units and milli are rounded up; each is valid if the amount fits into it.
	units, milli int64
}

// precision is the precision of a comparison: the coarsest of those of the amounts
// that are compared.
type precision int

const (
	inThousandths precision = iota
	inUnits
	// exactly is for amounts that do not fit into an int64, and for negative amounts.
	// It is slow, but correct where integers would overflow, as they do in core/v1.
	// The cost grows with the exponents of the quantities: requests with very large
	// exponents are rejected before admission.
	exactly
)

func amountOf(quantity *resource.Quantity) amount {
	if quantity.Sign() < 0 || quantity.CmpInt64(math.MaxInt64) > 0 {
		return amount{quantity: quantity, precision: exactly}
	}
	units := quantity.Value()
	if units > resource.MaxMilliValue {
		return amount{quantity: quantity, precision: inUnits, units: units}
	}
	return amount{quantity: quantity, units: units, milli: quantity.MilliValue()}
}

// less reports whether a is less than b, at a precision that is valid for both.
func (a *amount) less(b *amount, p precision) bool {
	if p == inThousandths {
		return a.milli < b.milli // inlined: nearly every comparison ends here
	}
	return a.lessCoarsely(b, p)
}

func (a *amount) lessCoarsely(b *amount, p precision) bool {
	if p == inUnits {
		return a.units < b.units
	}
	q := *a.quantity // Cmp changes its receiver, and bounds are shared
	return q.Cmp(*b.quantity) < 0
}

// ratioTo returns a / b, and whether it is above the bound. Neither a nor b may be 0.
func (a *amount) ratioTo(b, bound *amount, p precision) (ratio float64, above bool) {
	// Unless it is exact, it is rounded as in core/v1.
	switch p {
	case inThousandths:
		ratio = float64(a.milli) / float64(b.milli)
	case inUnits:
		ratio = float64(a.units) / float64(b.units)
	case exactly:
		exact := a.rat()
		exact.Quo(exact, b.rat())
		ratio, _ = exact.Float64()
		return ratio, exact.Cmp(bound.rat()) > 0
	}
	if bound.precision == inThousandths { // it may be a fraction, also if a and b are large
		return ratio, ratio*1000 > float64(bound.milli)
	}
	return ratio, ratio > float64(bound.units)
}

// rat returns the amount as a fraction.
func (a *amount) rat() *big.Rat {
	q := *a.quantity // AsDec changes its receiver, and bounds are shared
	dec := q.AsDec()
	scale := int64(dec.Scale())
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(scale, -scale)), nil)
	if scale < 0 {
		return new(big.Rat).SetInt(power.Mul(power, dec.UnscaledBig()))
	}
	return new(big.Rat).SetFrac(dec.UnscaledBig(), power)
}
