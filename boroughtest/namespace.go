// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package boroughtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
)

const (
	// defaultTerminationTimeout is the default of TerminationTimeout.
	defaultTerminationTimeout = time.Minute
	// explainTimeout bounds the request for what a Namespace waits for.
	explainTimeout = 5 * time.Second
	// suffixLength is the length of the random suffix of a name.
	suffixLength = 5
)

// NamespaceOption is an option of Server.Namespace.
type NamespaceOption func(*namespaceOptions)

type namespaceOptions struct{ terminationTimeout time.Duration }

// TerminationTimeout sets how long the Namespace may take to be removed. The default is
// one minute.
func TerminationTimeout(timeout time.Duration) NamespaceOption {
	return func(o *namespaceOptions) { o.terminationTimeout = timeout }
}

// Namespace creates a Namespace and returns its name, the name of the test with a random
// suffix. When the test ends, the Namespace is deleted. If it is not removed in time, the
// test fails with what the Namespace waits for, such as the finalizer of a Pod. It also fails
// if the Namespace is protected from deletion by then.
//
// A controller that removes finalizers has to run until then, but the context of the test is
// canceled before. End it by a function that is registered with t.Cleanup before the call of
// Namespace, or call Namespace in a subtest.
func (s *Server) Namespace(t testing.TB, options ...NamespaceOption) string {
	t.Helper()
	o := namespaceOptions{defaultTerminationTimeout}
	for _, option := range options {
		option(&o)
	}
	client, err := versioned.NewForConfig(s.admin)
	if err != nil {
		t.Fatalf("create a client: %v", err)
	}
	namespaces := client.TenancyV1().Namespaces()
	s.mu.RLock()
	var ns *v1.Namespace
	err = onConnection(func() (err error) {
		ns, err = namespaces.Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(t.Name())}}, metav1.CreateOptions{})
		return err
	})
	s.mu.RUnlock()
	if err != nil {
		t.Fatalf("create a Namespace: %v", err)
	}
	t.Cleanup(func() {
		s.mu.RLock()
		defer s.mu.RUnlock()
		ctx, cancel := context.WithTimeout(context.Background(), o.terminationTimeout)
		defer cancel()
		err := remove(ctx, namespaces, ns)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("it is still there after %s, and waits for %s; what runs with t.Context() has ended", o.terminationTimeout, explain(client.TenancyV1(), ns.Name))
		}
		if err != nil {
			t.Errorf("delete the Namespace %s: %v", ns.Name, err)
		}
	})
	return ns.Name
}

// namespaceName returns a valid name, with as much of the name of the test as it can have.
func namespaceName(test string) string {
	name := []byte(strings.ToLower(test))
	for i, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			name[i] = '-'
		}
	}
	limit := validation.DNS1123LabelMaxLength - suffixLength - 1
	return strings.TrimLeft(string(name[:min(len(name), limit)])+"-"+utilrand.String(suffixLength), "-")
}

// onConnection sends a request, and again if the server has not answered: a connection that
// another request opened just before a restart fails for the first request that uses it.
func onConnection(send func() error) error {
	unanswered := func(err error) bool { return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown }
	return retry.OnError(wait.Backoff{Steps: 2}, unanswered, send)
}

// remove deletes the Namespace, and returns when it is gone.
func remove(ctx context.Context, namespaces tenancyv1.NamespaceInterface, ns *v1.Namespace) error {
	err := onConnection(func() error {
		return namespaces.Delete(ctx, ns.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &ns.UID}})
	})
	switch {
	case apierrors.HasStatusCause(err, v1.NamespaceNotEmptyCause):
		err = nil // it is Terminating, and has no finalizers
	case apierrors.HasStatusCause(err, v1.NamespaceProtectedCause):
	case apierrors.IsConflict(err):
		return nil // another has its name
	}
	for err == nil {
		var current *v1.Namespace
		if current, err = namespaces.Get(ctx, ns.Name, metav1.GetOptions{}); err != nil {
			break
		}
		if current.UID != ns.UID {
			return nil
		}
		var events watch.Interface
		events, err = namespaces.Watch(ctx, metav1.ListOptions{
			FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, ns.Name).String(),
			ResourceVersion: current.ResourceVersion,
		})
		if err != nil {
			break
		}
		if awaitDeleted(events) {
			return nil
		}
		// The watch has ended: with the context, or with the server.
		err = ctx.Err()
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// awaitDeleted returns false if the watch ends before.
func awaitDeleted(events watch.Interface) bool {
	defer events.Stop()
	for event := range events.ResultChan() {
		if event.Type == watch.Deleted {
			return true
		}
	}
	return false
}

// explain returns what a Namespace waits for, as kubectl get shows it.
func explain(client tenancyv1.TenancyV1Interface, name string) string {
	ctx, cancel := context.WithTimeout(context.Background(), explainTimeout)
	defer cancel()
	body, err := client.RESTClient().Get().Resource("namespaces").Name(name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
	var table metav1.Table
	if err == nil {
		err = json.Unmarshal(body, &table)
	}
	if err != nil {
		return fmt.Sprintf("something unknown: %v", err)
	}
	cell := func(column string) any {
		i := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == column })
		if i < 0 || len(table.Rows) != 1 {
			return "something unknown"
		}
		return table.Rows[0].Cells[i]
	}
	return fmt.Sprintf("%v; details: %v", cell("Waiting For"), cell("Details"))
}
