// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"
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

// TestRecordStays checks that events of when an object could be read do not remove its record.
func TestRecordStays(t *testing.T) {
	pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "town", Name: "p"}}
	for name, tc := range map[string]struct {
		recorded int64 // the revision, 0 if it is not known
		event    watch.EventType
		revision string
		removed  bool
	}{
		"it has become unreadable":         {5, watch.Deleted, "5", false},
		"it was created, and is not known": {0, watch.Added, "3", false},
		"it was created":                   {5, watch.Added, "3", false},
		"it is readable again":             {5, watch.Added, "6", true},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newPodStore(t)
			objects := s.config.Objects
			objects.put(klog.Background(), Object{Resource: s.config.Resource, Namespace: "town", Name: "p", Key: "/pods/town/p", revision: tc.recorded})
			event := pod.DeepCopy()
			event.ResourceVersion = tc.revision
			w := &watcher{store: s, logger: klog.Background()}
			w.translate(watch.Event{Type: tc.event, Object: event})
			if removed := !objects.any(s.config.Resource); removed != tc.removed {
				t.Errorf("removed: %t, want %t", removed, tc.removed)
			}
		})
	}
}

// storedClient is a client of an etcd that has one value since a revision, or none, and another one
// before.
type storedClient struct {
	kubernetes.Interface
	value, previous []byte
	revision        int64
	err             error
}

func (c storedClient) Get(_ context.Context, key string, opts kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	switch {
	case c.err != nil:
		return kubernetes.GetResponse{}, c.err
	case opts.Revision == 0 || opts.Revision >= c.revision:
		if c.value == nil {
			return kubernetes.GetResponse{}, nil
		}
	case c.previous == nil:
		return kubernetes.GetResponse{}, nil
	default:
		return kubernetes.GetResponse{KV: &mvccpb.KeyValue{Key: []byte(key), Value: c.previous, ModRevision: c.revision - 1}}, nil
	}
	return kubernetes.GetResponse{KV: &mvccpb.KeyValue{Key: []byte(key), Value: c.value, ModRevision: c.revision}}, nil
}

// TestReadAfterError examines an object that can be read, after an error that has passed.
// Watches end only if one of them, or a list, has left out what is stored.
func TestReadAfterError(t *testing.T) {
	const none = -1
	for name, tc := range map[string]struct {
		recorded int64 // the revision, 0 if it is not known, or none
		leftOut  int64
		previous string // what is stored before: nothing, "readable", or something else
		ends     bool
	}{
		"a GET has failed":                              {0, 0, "readable", false},
		"a list has left it out":                        {5, 0, "readable", true},
		"a list has left out an earlier state":          {4, 0, "damaged", false},
		"a watch has left out a new one":                {none, 5, "", true},
		"a watch has left it out":                       {none, 5, "readable", true},
		"a watch has left out the previous state":       {none, 5, "damaged", false},
		"a watch has left out an earlier state":         {none, 4, "readable", false},
		"a watch has left it out, and a GET has failed": {0, 5, "readable", true},
	} {
		t.Run(name, func(t *testing.T) {
			s, data := newPodStore(t)
			client := storedClient{value: data, revision: 5}
			switch tc.previous {
			case "":
			case "readable":
				client.previous = data
			default:
				client.previous = []byte(tc.previous)
			}
			s.config.Client = client
			if tc.recorded != none {
				s.note(t.Context(), benchKey, tc.recorded, errors.New("no key"))
			}
			if ends := s.examineKey(t.Context(), benchKey, tc.leftOut); ends != tc.ends {
				t.Errorf("watches end: %t, want %t", ends, tc.ends)
			}
			if !tc.ends && s.config.Objects.any(s.config.Resource) {
				t.Error("the record has stayed")
			}
		})
	}
}

// TestLeftOutDeletion examines an object of which a watch may have left out the deletion.
func TestLeftOutDeletion(t *testing.T) {
	s, data := newPodStore(t)
	for name, tc := range map[string]struct {
		previous []byte
		leftOut  int64
		ends     bool
	}{
		"it could be read":      {data, 5, true},
		"it was left out":       {[]byte("damaged"), 5, false},
		"no watch has left out": {data, 0, false},
		"an earlier state":      {data, 4, false},
	} {
		s.config.Client = storedClient{previous: tc.previous, revision: 5}
		if ends := s.examineKey(t.Context(), benchKey, tc.leftOut); ends != tc.ends {
			t.Errorf("%s: watches end: %t, want %t", name, ends, tc.ends)
		}
	}
}

// TestExaminedAgain shows that an object that a watch has left out is examined until it is known
// whether it can be read.
func TestExaminedAgain(t *testing.T) {
	for name, fail := range map[string]func(*Store, *storedClient){
		"etcd": func(_ *Store, client *storedClient) { client.err = errors.New("no leader") },
		"a key service": func(s *Store, _ *storedClient) {
			s.config.Transformer = failing{err: status.Error(codes.Unavailable, "connection refused")}
		},
	} {
		s, data := newPodStore(t)
		transformer, client := s.config.Transformer, storedClient{value: data, previous: data, revision: 5}
		failed := client
		fail(s, &failed)
		s.config.Client = failed
		if s.examineKey(t.Context(), benchKey, 5) {
			t.Errorf("%s: watches end before it is known", name)
		}
		s.config.Client, s.config.Transformer = client, transformer
		again := s.config.Objects.Some(s.config.Resource, MaxExamined)
		if len(again) != 1 || !s.examineKey(t.Context(), again[0].Key, 0) {
			t.Errorf("%s: watches do not end: %v", name, again)
		}
	}
}

// TestQueued shows that one object is examined once for all watches that have left it out.
func TestQueued(t *testing.T) {
	s, _ := newPodStore(t)
	for revision := range int64(3 * maxSuspects) {
		s.suspect(suspect{fmt.Sprint(revision % 2), revision})
	}
	want := map[string]int64{"0": maxSuspects - 2, "1": maxSuspects - 1, "first": 0}
	if got := s.queued(suspect{key: "first"}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestSuspectOfWatch shows that a watch that leaves an object out says at which revision.
func TestSuspectOfWatch(t *testing.T) {
	s, _ := newPodStore(t)
	unread := &placeholder{key: benchKey, err: errors.New("no key")}
	unread.ResourceVersion = "5"
	if _, _, err := s.readable(storage.Everything).GetAttrs(unread); err == nil {
		t.Error("the object matches")
	}
	if got, want := <-s.suspects, (suspect{benchKey, 5}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestListedByWatch shows that records end when a watch cache has got the objects as initial
// events.
func TestListedByWatch(t *testing.T) {
	for _, tc := range []struct {
		annotation, revision string
		stays                bool
	}{{"true", "7", false}, {"true", "6", true}, {"", "7", true}} {
		s, _ := newPodStore(t)
		s.note(t.Context(), benchKey, 5, errors.New("no key"))
		s.config.NextRevision = func(context.Context) (int64, error) { return 7, nil }
		s.config.Cached = true
		s.expireWatches(t.Context(), benchKey)
		bookmark := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: tc.revision, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: tc.annotation}}}
		w := &watcher{store: s, logger: klog.Background(), bookmarks: true}
		w.translate(watch.Event{Type: watch.Bookmark, Object: bookmark})
		if stays := s.isAwaited(benchKey); stays != tc.stays || s.config.Objects.any(s.config.Resource) != tc.stays {
			t.Errorf("%+v: awaited: %t", tc, stays)
		}
	}
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

// progressing is a library whose watches send a bookmark and an object.
type progressing struct{ Library }

func (progressing) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	w := watch.NewFakeWithChanSize(2, false)
	w.Action(watch.Bookmark, &tenancy.Pod{})
	w.Action(watch.Added, &tenancy.Pod{})
	return w, nil
}

// TestBookmarks checks that only watches that ask for bookmarks get them. The library also
// makes one of the progress that was requested for another watch.
func TestBookmarks(t *testing.T) {
	s, _ := newPodStore(t)
	s.Interface = progressing{}
	for name, test := range map[string]struct {
		options storage.ListOptions
		want    watch.EventType
	}{
		"none":               {storage.ListOptions{}, watch.Added},
		"of a watch cache":   {storage.ListOptions{ProgressNotify: true}, watch.Bookmark},
		"of an initial list": {storage.ListOptions{Predicate: storage.SelectionPredicate{AllowWatchBookmarks: true}}, watch.Bookmark},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := s.Watch(t.Context(), "/", test.options)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			if event := <-w.ResultChan(); event.Type != test.want {
				t.Errorf("the first event is %s, want %s", event.Type, test.want)
			}
		})
	}
}

// watchingLibrary is a library with one watch.
type watchingLibrary struct {
	Library
	watch *watch.FakeWatcher
}

func (l watchingLibrary) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	return l.watch, nil
}

// TestExpiredBeforeProgress checks that a watch ends before it reaches the revision from which on
// lists have what can be read again: a client could continue there.
func TestExpiredBeforeProgress(t *testing.T) {
	for range 100 {
		s, _ := newPodStore(t)
		library := watchingLibrary{watch: watch.NewFake()}
		s.Interface = library
		w, err := s.Watch(t.Context(), "/", storage.ListOptions{ProgressNotify: true})
		if err != nil {
			t.Fatal(err)
		}
		first := make(chan watch.Event, 1)
		go func() { first <- <-w.ResultChan() }()
		s.config.NextRevision = func(context.Context) (int64, error) {
			library.watch.Action(watch.Bookmark, &tenancy.Pod{}) // of this revision
			for range 100 {
				goruntime.Gosched()
			}
			return 7, nil
		}
		s.expireWatches(t.Context(), "/a/b")
		if event := <-first; event.Type != watch.Error {
			t.Fatalf("the first event is %s", event.Type)
		}
		w.Stop()
	}
}
