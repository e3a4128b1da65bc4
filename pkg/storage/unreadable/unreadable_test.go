// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2/textlogger"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// failing fails to decrypt.
type failing struct {
	value.Transformer
	err error
}

func (f failing) TransformFromStorage(context.Context, []byte, value.Context) ([]byte, bool, error) {
	return nil, false, f.err
}

// TestOutage shows that an object is left out only if its value is the cause of the
// error. An error of a key service, or a canceled request, is not.
func TestOutage(t *testing.T) {
	s, data := newPodStore(t)
	library := etcd3.NewDefaultDecoder(s.config.Codec, s.config.Versioner)
	for name, test := range map[string]struct {
		err     error
		leftOut bool
	}{
		"no key":                     {errors.New("no matching key was found"), true},
		"key service rejects":        {fmt.Errorf("decrypt the DEK: %w", status.Error(codes.NotFound, "no such key")), true},
		"key service is unavailable": {fmt.Errorf("decrypt the DEK: %w", status.Error(codes.Unavailable, "connection refused")), false},
		"key service is slow":        {fmt.Errorf("decrypt the DEK: %w", status.Error(codes.DeadlineExceeded, "deadline exceeded")), false},
		"reader has gone away":       {fmt.Errorf("decrypt the DEK: %w", context.Canceled), false},
		"reader has no time left":    {context.DeadlineExceeded, false},
	} {
		t.Run(name, func(t *testing.T) {
			transformer := transformer{failing{err: test.err}, s}
			reading := &listing{}
			ctx := context.WithValue(t.Context(), readerKey{}, reading)
			out, _, err := transformer.TransformFromStorage(ctx, data, value.DefaultContext(benchKey))
			if (err == nil) != test.leftOut {
				t.Errorf("list: got the error %v", err)
			}
			if test.leftOut {
				if _, err := (decoder{library, s}).DecodeListItem(ctx, out, 1, s.config.NewFunc); err != nil || !reading.leftOut {
					t.Errorf("list: left out %t, error %v", reading.leftOut, err)
				}
			}
			if _, _, err = transformer.TransformFromStorage(context.WithValue(t.Context(), readerKey{}, watching{}), data, value.DefaultContext(benchKey)); (err == nil) != test.leftOut {
				t.Errorf("watch: got the error %v", err)
			}
			var unread *readError
			if _, _, err = transformer.TransformFromStorage(t.Context(), data, value.DefaultContext(benchKey)); errors.As(err, &unread) != test.leftOut || !errors.Is(err, test.err) {
				t.Errorf("get: got the error %v", err)
			}
		})
	}
}

func TestIdentify(t *testing.T) {
	pods, _ := newPodStore(t)
	config := pods.config
	config.Resource, config.ResourcePrefix = tenancy.Resource("namespaces"), "/tenancy.borough.io/namespaces"
	config.NewFunc = func() runtime.Object { return &tenancy.Namespace{} }
	namespaces := newStore(config)
	pod := func(namespace, name string) runtime.Object {
		p := &tenancy.Pod{}
		p.Namespace, p.Name = namespace, name
		return p
	}
	namespace := func(namespace, name string) runtime.Object {
		n := &tenancy.Namespace{}
		n.Namespace, n.Name = namespace, name
		return n
	}
	for _, test := range []struct {
		store *Store
		key   string
		obj   runtime.Object
		is    bool
	}{
		{pods, "pods/town/p", pod("town", "p"), true},
		{pods, "pods/town/p", pod("town", "q"), false},
		{pods, "pods/town/p", pod("tow", "p"), false},
		{pods, "pods/town/p", pod("towns", "p"), false},
		{pods, "pods/town/p", pod("town", ""), false},
		{pods, "pods/town/p", pod("", "p"), false},
		{pods, "pods/town/p", pod("", "town/p"), true}, // validation rejects slashes
		{pods, "pods/town/p", namespace("town", "p"), false},
		{pods, "pods/", pod("", ""), true},
		{namespaces, "namespaces/town", namespace("", "town"), true},
		{namespaces, "namespaces/town", namespace("", "towns"), false},
		{namespaces, "namespaces/town", namespace("town", "town"), false},
		{namespaces, "namespaces/town", namespace("town", ""), false},
		{namespaces, "namespaces/town", pod("", "town"), false},
	} {
		if err := test.store.identify([]byte("/registry/tenancy.borough.io/"+test.key), test.obj); (err == nil) != test.is {
			t.Errorf("%s and %T %+v: got the error %v", test.key, test.obj, test.obj, err)
		}
	}
}

func FuzzLabel(f *testing.F) {
	f.Add([]byte("value"), []byte("key"), "")
	f.Add([]byte{}, []byte{}, "why")
	f.Fuzz(func(t *testing.T, data, key []byte, reason string) {
		var failure error
		if reason != "" {
			failure = errors.New(reason)
		}
		gotData, gotKey, err := unlabel(label(data, key, failure))
		if !bytes.Equal(gotKey, key) || (err == nil) != (failure == nil) {
			t.Errorf("got the key %q and the error %v", gotKey, err)
		}
		if err == nil && !bytes.Equal(gotData, data) || err != nil && err.Error() != reason {
			t.Errorf("got %q and the error %v", gotData, err)
		}
	})
}

func TestObjects(t *testing.T) {
	gr := tenancy.Resource("pods")
	var log strings.Builder
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
	o := NewObjects()
	o.add(gr)
	for i := range 3 * maxLogged {
		for range 2 {
			name := fmt.Sprintf("p%04d", i)
			o.put(logger, Object{Resource: gr, Namespace: "town", Name: name, Key: "/" + name, Reason: strings.Repeat("long\n", 1000)})
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != maxLogged+1 {
		t.Errorf("%d lines were logged, want %d", lines, maxLogged+1)
	}
	some := o.Some(gr, 7)
	if len(some) != 7 || !slices.IsSortedFunc(some, func(a, b Object) int { return strings.Compare(a.Key, b.Key) }) || len(some[0].Reason) > maxReason || strings.Contains(some[0].Reason, "\n") {
		t.Errorf("some: %+v", some)
	}
	if got := len(o.In(gr, "town")); got != 3*maxLogged || o.In(gr, "village") != nil || o.In(tenancy.Resource("others"), "town") != nil {
		t.Errorf("in town: %d", got)
	}
	if got := o.Counts(); len(got) != 1 || got[0] != (Count{gr, 3 * maxLogged}) {
		t.Errorf("counts: %v", got)
	}
	for _, name := range o.In(gr, "town") {
		o.remove(logger, gr, "town", name, latest)
		o.remove(logger, gr, "town", name, latest)
	}
	if o.any(gr) || len(o.Counts()) > 0 || len(o.resources[gr].byNamespace) > 0 {
		t.Errorf("in the end: %v", o.Counts())
	}
}
