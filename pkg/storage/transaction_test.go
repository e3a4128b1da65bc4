// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/transaction"
)

// TestTransaction creates Namespaces together with Pods, encrypted.
func TestTransaction(t *testing.T) {
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	writeEncryption(t, file, "one")
	encrypted := func(o *storage.Options) { o.Etcd.EncryptionProviderConfigFilepath = file }
	onBoth(t, encrypted, func(t *testing.T, s server) {
		guards := s.Backend
		guardOf := func(name string) *transaction.Guard {
			t.Helper()
			guard, err := guards.Guard(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			return guard
		}
		var pod *tenancy.Pod
		createPod := func(namespace, name string) func(context.Context) error {
			return func(ctx context.Context) error {
				obj, err := s.Pods.Create(in(ctx, namespace), &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
				if err == nil {
					pod = obj.(*tenancy.Pod)
				}
				return err
			}
		}
		var limitRange *tenancy.LimitRange
		createLimitRange := func(namespace, name string) func(context.Context) error {
			return func(ctx context.Context) error {
				obj, err := s.LimitRanges.Create(in(ctx, namespace), &tenancy.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
				if err == nil {
					limitRange = obj.(*tenancy.LimitRange)
				}
				return err
			}
		}
		create := func(name string, guard *transaction.Guard, creates ...func(context.Context) error) (*tenancy.Namespace, error) {
			ctx := transaction.With(in(t.Context(), ""), func(context.Context) (transaction.Plan, error) {
				return transaction.Plan{Guard: guard, Creates: creates}, nil
			})
			obj, err := s.Namespaces.Create(ctx, &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
			if err != nil {
				return nil, err
			}
			return obj.(*tenancy.Namespace), nil
		}

		guard := guardOf("alice")
		created, err := create("town", guard, createPod("town", "p"), createLimitRange("town", "l"))
		if err != nil {
			t.Fatal(err)
		}
		if created.ResourceVersion != pod.ResourceVersion || created.ResourceVersion != limitRange.ResourceVersion {
			t.Errorf("the Namespace is of revision %s, the Pod of %s, the LimitRange of %s", created.ResourceVersion, pod.ResourceVersion, limitRange.ResourceVersion)
		}
		for _, key := range []string{
			"/registry/tenancy.borough.io/namespaces/town", "/registry/tenancy.borough.io/pods/town/p", "/registry/tenancy.borough.io/limitranges/town/l",
		} {
			if value := s.raw(t, key); !bytes.HasPrefix(value, []byte("k8s:enc:")) {
				t.Errorf("%s is not encrypted: %q", key, value)
			}
		}
		s.createPod(t, "town", "q") // the fence has the revision of the Namespace

		if got := guardOf("alice"); got.Key != guard.Key || guard.Revision != 0 || got.Revision == 0 {
			t.Errorf("the guard is %+v, and was %+v", got, guard)
		}
		if got := guardOf("bob/../alice"); got.Key == guard.Key || got.Revision != 0 || len(got.Key) != len(guard.Key) {
			t.Errorf("the guard of another name is %+v", got)
		}

		refused := errors.New("refused")
		for name, test := range map[string]struct {
			guard   *transaction.Guard
			content func(context.Context) error
			want    func(error) bool
		}{
			"changed guard": {guard, createPod("city", "p"), func(err error) bool { return errors.Is(err, transaction.ErrGuardChanged) }},
			"no content":    {nil, func(context.Context) error { return nil }, func(err error) bool { return strings.Contains(err.Error(), "no object was created") }},
			"refused":       {guardOf("alice"), func(context.Context) error { return refused }, func(err error) bool { return errors.Is(err, refused) }},
		} {
			if _, err := create("city", test.guard, createLimitRange("city", "l"), test.content); err == nil || !test.want(err) {
				t.Errorf("%s: got %v", name, err)
			}
			if _, err := s.Namespaces.Get(in(t.Context(), ""), "city", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("%s: get the Namespace: %v", name, err)
			}
		}
		if _, err := create("town", guardOf("alice"), createPod("town", "r")); !apierrors.IsAlreadyExists(err) || !strings.Contains(err.Error(), `"town"`) {
			t.Errorf("a Namespace that exists: %v", err)
		}
		late := errors.New("from after the transaction")
		if _, err := create("late", nil, createLimitRange("late", "l"), func(ctx context.Context) error {
			return errors.Join(createPod("late", "p")(ctx), late)
		}); !errors.Is(err, late) {
			t.Errorf("an error from after the transaction: %v", err)
		}
		if _, err := s.Pods.Get(in(t.Context(), "late"), "p", &metav1.GetOptions{}); err != nil {
			t.Errorf("get what was written before an error: %v", err)
		}
		twice := func(ctx context.Context) error {
			return errors.Join(createPod("twice", "p")(ctx), createPod("twice", "q")(ctx))
		}
		if _, err := create("town", nil, func(context.Context) error { return refused }); !apierrors.IsAlreadyExists(err) {
			t.Errorf("a Namespace that exists, with a refusal: %v", err)
		}
		swallow := func(ctx context.Context) error {
			_ = createLimitRange("city", "l")(ctx)
			return nil
		}
		again := func(ctx context.Context) error {
			return errors.Join(createPod("city", "p")(ctx), createPod("city", "q")(ctx))
		}
		if _, err := create("city", nil, again, swallow, func(context.Context) error { return refused }); !errors.Is(err, refused) {
			t.Errorf("a refusal that the others ignore: %v", err)
		}
		if _, err := s.LimitRanges.Get(in(t.Context(), "city"), "l", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get a part of what was refused: %v", err)
		}
		if _, err := create("twice", nil, twice); err == nil || !strings.Contains(err.Error(), "a second object") {
			t.Errorf("two objects: %v", err)
		}
		if _, err := s.Pods.Get(in(t.Context(), "twice"), "q", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get the second object: %v", err)
		}
	})
}
