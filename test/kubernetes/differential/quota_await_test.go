// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Kubernetes' admission reads quotas from a cache that lags behind, and ignores one
// whose usage it does not know. The events of all quotas reach this cache in their
// order, so it is up to date once it has a later event: a mark in the status of the
// quota marks, which admission shows when it refuses an object.

const marksNamespace = "quota-marks"

var marks = regexp.MustCompile(`used: count/limitranges=(\w+)`)

// prepareAwaitQuotas creates what awaitQuotas needs.
func (s *sender) prepareAwaitQuotas(ctx context.Context) error {
	v := s.visit(marksNamespace)
	for _, step := range []step{
		makeNamespace,
		{Do: "POST resourcequotas", Body: object{"metadata": object{"name": "marks"}, "spec": object{"hard": object{"count/limitranges": "0"}}}},
	} {
		a, err := v.do(ctx, step)
		if err != nil {
			return err
		}
		if a.Code != 201 {
			return fmt.Errorf("%s: %v", step.Do, a)
		}
	}
	return nil
}

// awaitQuotas waits until admission uses the quotas as they are now.
func (s *sender) awaitQuotas(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	v, mark := s.visit(marksNamespace), s.quotaMarks.Add(1)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	// The controller may replace a mark by the usage.
	for {
		list := object{"count/limitranges": fmt.Sprint(mark)}
		if _, err := v.do(ctx, step{Do: "PATCH resourcequotas/marks/status", As: "merge", Body: object{"status": object{"hard": object{"count/limitranges": "0"}, "used": list}}}); err != nil {
			return err
		}
		a, err := v.do(ctx, step{Do: "POST limitranges", Body: object{"metadata": object{"name": "l"}, "spec": object{"limits": []any{}}}})
		if err != nil {
			return err
		}
		if match := marks.FindStringSubmatch(fmt.Sprint(a.field("message"))); match != nil {
			if seen, err := resource.ParseQuantity(match[1]); err == nil && seen.CmpInt64(mark) >= 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("admission of Kubernetes has not seen the quotas: %w", ctx.Err())
		case <-tick.C:
		}
	}
}
