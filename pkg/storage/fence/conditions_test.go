// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/borough-io/borough/pkg/storage/transaction"
)

const rulesPrefix = "/rules/"

// condition returns the condition that the rules are as they are now, of which that
// with the key is used.
func (f *fixture) condition(key string) *transaction.Condition {
	f.t.Helper()
	response, err := f.client.KV.Get(f.t.Context(), rulesPrefix)
	if err != nil {
		f.t.Fatal(err)
	}
	condition := &transaction.Condition{Prefix: rulesPrefix, Revision: response.Header.Revision, Key: key}
	if key != "" {
		condition.KeyRevision = f.revisionOf(key)
	}
	return condition
}

// TestCondition changes the rules between the first plan of a transaction and its
// write.
func TestCondition(t *testing.T) {
	used, other := rulesPrefix+"used", rulesPrefix+"used-too"
	remove := func(key string) func(*fixture) {
		return func(f *fixture) {
			if _, err := f.client.KV.Delete(f.t.Context(), key); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		used   string
		change func(f *fixture)
		again  bool // the transaction is planned again
	}{
		"no change":        {used: used},
		"used, changed":    {used: used, change: func(f *fixture) { f.write(used, "2") }, again: true},
		"used, removed":    {used: used, change: remove(used), again: true},
		"other, changed":   {used: used, change: func(f *fixture) { f.write(other, "2") }, again: true},
		"other, removed":   {used: used, change: remove(other)},
		"new":              {used: used, change: func(f *fixture) { f.write(rulesPrefix+"new", "1") }, again: true},
		"none used, new":   {change: func(f *fixture) { f.write(rulesPrefix+"new", "1") }, again: true},
		"not a rule":       {used: used, change: func(f *fixture) { f.write("/rule", "1"); f.write("/rulesets/new", "1") }},
		"generation, too":  {used: used, change: func(f *fixture) { f.write(config().GenerationKey, ""); f.write(used, "2") }, again: true},
		"namespace exists": {used: used, change: func(f *fixture) { f.write(newNamespaceKey, "another"); f.write(used, "2") }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write(used, "1")
			f.write(other, "1")
			plans := 0
			planner := func(context.Context) (transaction.Plan, error) {
				plans++
				plan := transaction.Plan{Condition: f.condition(test.used)}
				if plans == 1 && test.change != nil {
					test.change(f)
				}
				return plan, nil
			}
			client := transaction.NewClient(f.namespaces, nil)
			response, err := client.OptimisticPut(transaction.With(t.Context(), planner), newNamespaceKey, []byte(active(t)), 0, kubernetes.PutOptions{})
			if err != nil || response.Succeeded != (name != "namespace exists") {
				t.Errorf("got %v, %v", response, err)
			}
			if again := plans > 1; again != test.again || plans > 2 {
				t.Errorf("planned %d times, want again %t", plans, test.again)
			}
		})
	}
}

// TestProvisionalPlan refuses by what is out of date.
func TestProvisionalPlan(t *testing.T) {
	outdated, refused := errors.New("refused by what is out of date"), errors.New("refused")
	for name, test := range map[string]struct {
		plan   func(provisional bool) error
		create func(provisional bool) error
		want   error
	}{
		"plan, out of date":   {plan: func(provisional bool) error { return map[bool]error{true: outdated}[provisional] }},
		"create, out of date": {create: func(provisional bool) error { return map[bool]error{true: outdated}[provisional] }},
		"plan":                {plan: func(bool) error { return refused }, want: refused},
		"create":              {create: func(bool) error { return refused }, want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			pods := transaction.NewClient(f.pods, nil)
			explained := 0
			provisional := true
			planner := func(context.Context) (transaction.Plan, error) {
				plan := transaction.Plan{Provisional: provisional, Explain: func(err error) error { explained++; return err }}
				first := provisional
				provisional = false
				if test.plan != nil {
					return plan, test.plan(first)
				}
				plan.Creates = append(plan.Creates, func(ctx context.Context) error {
					if err := test.create(first); err != nil {
						return err
					}
					_, err := pods.OptimisticPut(ctx, newPodKey, []byte("pod"), 0, kubernetes.PutOptions{})
					return err
				})
				return plan, nil
			}
			response, err := transaction.NewClient(f.namespaces, nil).OptimisticPut(transaction.With(t.Context(), planner), newNamespaceKey, []byte(active(t)), 0, kubernetes.PutOptions{})
			if !errors.Is(err, test.want) || response.Succeeded != (test.want == nil) || (f.revisionOf(newPodKey) != 0) != (test.want == nil && test.create != nil) {
				t.Errorf("got %v, %v", response, err)
			}
			if test.create != nil && explained == 0 {
				t.Error("the error of a create was not explained")
			}
		})
	}
}

// TestRenew changes the rules in each of several plans, and while conditions are renewed.
// Objects are created again only if the plan has to be another one.
func TestRenew(t *testing.T) {
	used := rulesPrefix + "used"
	for name, test := range map[string]struct {
		change string // the key of the rule that is written
		plans  int
	}{
		"another rule":  {rulesPrefix + "other", 1},
		"the used rule": {used, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write(used, "1")
			pods := transaction.NewClient(f.pods, nil)
			plans, renewals := 0, 0
			planner := func(context.Context) (transaction.Plan, error) {
				plans++
				condition := f.condition(used)
				change := plans == 1
				return transaction.Plan{
					Condition: condition,
					Renew: func(context.Context) (*transaction.Condition, error) {
						renewals++
						again := f.condition(used)
						if again.KeyRevision != condition.KeyRevision {
							return nil, nil
						}
						if renewals < 5 {
							f.write(test.change, "while it is renewed")
						}
						return again, nil
					},
					Creates: []func(context.Context) error{func(ctx context.Context) error {
						if change {
							f.write(test.change, "while objects are created")
						}
						_, err := pods.OptimisticPut(ctx, newPodKey, []byte("pod"), 0, kubernetes.PutOptions{})
						return err
					}},
				}, nil
			}
			response, err := transaction.NewClient(f.namespaces, nil).OptimisticPut(transaction.With(t.Context(), planner), newNamespaceKey, []byte(active(t)), 0, kubernetes.PutOptions{})
			if err != nil || !response.Succeeded || f.revisionOf(newPodKey) != response.Revision {
				t.Errorf("got %v, %v", response, err)
			}
			if plans != test.plans {
				t.Errorf("planned %d times, want %d", plans, test.plans)
			}
		})
	}
}
