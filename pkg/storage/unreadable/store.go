// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"strings"
	"sync"

	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/borough-io/borough/pkg/truncate"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"
)

// Config configures a Store.
type Config struct {
	// Resource is the resource of the objects.
	Resource schema.GroupResource
	// PathPrefix is the prefix of all keys in etcd, and ResourcePrefix is the part
	// after it in the keys of the resource. Each starts with a slash.
	PathPrefix, ResourcePrefix string
	// Client reads from etcd.
	Client kubernetes.Interface
	// NextRevision writes to etcd, outside of the resource, and returns the revision.
	NextRevision func(ctx context.Context) (int64, error)
	// Codec encodes and decodes objects, and Transformer encrypts and decrypts them.
	Codec       runtime.Codec
	Transformer value.Transformer
	Versioner   storage.Versioner
	// DecodeShared returns the object that Codec would decode for a watch, or nil if Codec
	// has to decode it. The object may share memory with others: only fields of its
	// metadata may be set. DecodeShared may be nil.
	DecodeShared func(encoded []byte) runtime.Object
	// NewFunc returns an empty object.
	NewFunc func() runtime.Object
	// Cached is true if a watch cache reads from the Store.
	Cached bool
	// Objects records the objects that cannot be read.
	Objects *Objects
}

// Parts are the parameters to create the library's store with.
type Parts struct {
	Codec       runtime.Codec
	Transformer value.Transformer
	Decoder     etcd3.Decoder
}

// Store is the library's store without the objects that cannot be read. GetList and
// Watch leave these out; a watch reports an object that becomes unreadable as
// deleted, and as added when it can be read again. For an object that cannot be
// read, the other methods return an error with the reason StorageReadError and change
// nothing.
type Store struct {
	storage.Interface
	config Config
	prefix string       // of all keys of the resource; ends in a slash
	kind   reflect.Type // of the objects

	suspects chan suspect

	mu      sync.Mutex
	watches map[*watcher]struct{}
	// expiring is whether expireWatches writes. Watches that begin at that time are held.
	expiring bool
	// recovered is the revision from which on lists have the objects that could be read
	// again last.
	recovered int64
	// awaited has the keys of objects that can be read again, until the watch cache has
	// listed them, and the revision from which on lists have them.
	awaited map[string]int64
}

// Library is the library's store.
type Library interface {
	storage.Interface
	Close()
}

// New creates the library's store with open. It returns the Store around it, and a
// function that closes both.
func New(config Config, open func(Parts) (Library, error)) (*Store, func(), error) {
	s := newStore(config)
	inner, err := open(Parts{
		Codec:       watchCodec{config.Codec, s},
		Transformer: transformer{config.Transformer, s},
		Decoder:     decoder{etcd3.NewDefaultDecoder(config.Codec, config.Versioner), s},
	})
	if err != nil {
		return nil, nil, err
	}
	s.Interface = inner
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.examine(ctx)
	}()
	return s, func() {
		cancel()
		<-ended
		inner.Close()
	}, nil
}

func newStore(config Config) *Store {
	config.Objects.add(config.Resource)
	return &Store{
		config:   config,
		prefix:   path.Join(config.PathPrefix, config.ResourcePrefix) + "/",
		kind:     reflect.TypeOf(config.NewFunc()),
		suspects: make(chan suspect, maxSuspects),
		watches:  map[*watcher]struct{}{},
		awaited:  map[string]int64{},
	}
}

// GetList lists the objects that can be read. As with objects that do not match a
// selector, a page may have fewer objects than the limit, and the count of remaining
// items includes those that cannot be read.
func (s *Store) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	reading := &listing{}
	err := s.Interface.GetList(context.WithValue(ctx, readerKey{}, reading), key, opts, list)
	if err != nil || !reading.leftOut {
		return err
	}
	return dropUnread(list)
}

// dropUnread removes the empty objects from a list. The store has set the
// resourceVersion of all others.
func dropUnread(list runtime.Object) error {
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return fmt.Errorf("leave unreadable objects out of a list: %w", err)
	}
	items := reflect.ValueOf(pointer).Elem()
	kept := 0
	for i := range items.Len() {
		item, err := meta.Accessor(items.Index(i).Addr().Interface())
		if err != nil {
			return fmt.Errorf("leave unreadable objects out of a list: %w", err)
		}
		if item.GetResourceVersion() != "" {
			items.Index(kept).Set(items.Index(i))
			kept++
		}
	}
	items.Set(items.Slice(0, kept))
	return nil
}

// Get reads one object.
func (s *Store) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	err := s.Interface.Get(ctx, key, opts, out)
	if err == nil {
		err = s.check(key, out)
	}
	return s.explain(ctx, key, err)
}

// GuaranteedUpdate updates one object.
func (s *Store) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	checked := func(obj runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
		if err := s.check(key, obj); err != nil {
			return nil, nil, err
		}
		return update(obj, meta)
	}
	return s.explain(ctx, key, s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, checked, cached))
}

// Delete deletes one object. With opts.ExpectTransformOrDecodeError, it deletes an
// object that cannot be read.
func (s *Store) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions, validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	if opts.ExpectTransformOrDecodeError {
		err := s.Interface.Delete(context.WithValue(ctx, readerKey{}, deleting{}), key, out, preconditions, validate, cached, opts)
		if err == nil {
			s.forget(ctx, s.fullKey(key))
		}
		return err
	}
	checked := func(ctx context.Context, obj runtime.Object) error {
		if err := s.check(key, obj); err != nil {
			return err
		}
		return validate(ctx, obj)
	}
	return s.explain(ctx, key, s.Interface.Delete(ctx, key, out, preconditions, checked, cached, opts))
}

// check returns an error if an object that was read does not belong to the key.
func (s *Store) check(key string, obj runtime.Object) error {
	if revision, err := s.config.Versioner.ObjectResourceVersion(obj); err != nil || revision == 0 {
		return err // no object
	}
	return s.identify([]byte(s.fullKey(key)), obj)
}

// explain converts the error of an object that could not be read to an API error,
// and returns other errors unchanged.
func (s *Store) explain(ctx context.Context, key string, err error) error {
	var unread *readError
	if !errors.As(err, &unread) {
		return err
	}
	key = s.fullKey(key)
	s.note(ctx, key, 0, unread)
	s.suspect(suspect{key: key}) // for the revision
	_, name := s.split(key)
	reason := truncate.Line(unread.Error(), maxReason)
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusInternalServerError,
		Reason: metav1.StatusReasonStoreReadError,
		Details: &metav1.StatusDetails{
			Group: s.config.Resource.Group, Kind: s.config.Resource.Resource, Name: name,
			Causes: []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse, Field: key, Message: reason}},
		},
		Message: fmt.Sprintf("%s %q cannot be read from storage, where its key is %s: %s", s.config.Resource, name, key, reason),
	}}
}

// fullKey returns the key in etcd for a key of the registry.
func (s *Store) fullKey(key string) string { return path.Join(s.config.PathPrefix, key) }

// split returns the namespace and the name in a key in etcd.
func (s *Store) split(key string) (namespace, name string) {
	name = strings.TrimPrefix(key, s.prefix)
	if before, after, ok := strings.Cut(name, "/"); ok {
		return before, after
	}
	return "", name
}

// note records that the object with the key cannot be read at the revision, which
// is 0 if it is unknown.
func (s *Store) note(ctx context.Context, key string, revision int64, err error) {
	s.mu.Lock()
	delete(s.awaited, key) // lists do not have it
	s.mu.Unlock()
	namespace, name := s.split(key)
	s.config.Objects.put(klog.FromContext(ctx), Object{
		Resource: s.config.Resource, Namespace: namespace, Name: name, Key: key, Reason: err.Error(), revision: revision,
	})
}

// forget records that the object with the key can be read, or no longer exists.
func (s *Store) forget(ctx context.Context, key string) {
	namespace, name := s.split(key)
	s.config.Objects.remove(klog.FromContext(ctx), s.config.Resource, namespace, name, latest)
}
