// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/etcd3"
	etcdmetrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/borough-io/borough/pkg/storage/etcdwatch"
)

// The library's store reads an object in two steps, decryption and decoding, and
// the whole operation fails when one of them fails. The types below wrap these
// steps. The context contains the operation that reads:
//
//   - A list reads one object after another. An object that cannot be read becomes
//     an empty object, which the list drops at the end.
//   - A watch reads several objects in parallel, and decodes without a context. The
//     key is appended to the value, and an object that cannot be read becomes a
//     placeholder. An object that was removed is not read for a watch cache, see removed.
//   - Every other operation reads one object, and returns the error.
//
// An object whose name or namespace differs from its key, for example because a byte
// in its name was flipped, is also treated as unreadable: otherwise it would replace
// the other object in lists and caches.

// readError is the error of an object that cannot be read.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

func newDecodeError(err error) error { return &readError{fmt.Errorf("decoding: %w", err)} }

// IsOutage reports whether an object could not be decrypted because a key service
// did not answer, or the request was canceled. The object may still be readable.
func IsOutage(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable:
		return true
	}
	return false
}

type readerKey struct{}

// listing is the state of a list that is being read.
type listing struct {
	// key and err belong to the object that was decrypted last.
	key value.Context
	err error
	// leftOut is true if at least one object could not be read.
	leftOut bool
}

// watching marks the context of a watch.
type watching struct{}

// deleting marks the context of a delete of an object that cannot be read. The
// library requires an error in one of the steps, but does not check the name.
type deleting struct{}

// transformer decrypts.
type transformer struct {
	value.Transformer
	store *Store
}

func (t transformer) TransformFromStorage(ctx context.Context, data []byte, key value.Context) ([]byte, bool, error) {
	if etcdwatch.IsOmitted(data) {
		return label(data, key.AuthenticatedData(), nil), false, nil
	}
	out, stale, err := t.Transformer.TransformFromStorage(ctx, data, key)
	if err != nil {
		if IsOutage(err) || ctx.Err() != nil {
			return nil, false, err
		}
		err = &readError{fmt.Errorf("decrypting: %w", err)}
	}
	switch reader := ctx.Value(readerKey{}).(type) {
	case *listing:
		reader.key, reader.err = key, err
		return out, stale, nil
	case watching:
		return label(out, key.AuthenticatedData(), err), stale, nil
	case deleting:
		if err == nil {
			_, err = t.store.decode(out, key.AuthenticatedData())
		}
	}
	return out, stale, err
}

// decoder decodes for all operations except watches.
type decoder struct {
	etcd3.Decoder
	store *Store
}

func (d decoder) Decode(data []byte, into runtime.Object, revision int64) error {
	if err := d.Decoder.Decode(data, into, revision); err != nil {
		return newDecodeError(err)
	}
	return nil
}

func (d decoder) DecodeListItem(ctx context.Context, data []byte, revision uint64, newItem func() runtime.Object) (runtime.Object, error) {
	list, ok := ctx.Value(readerKey{}).(*listing)
	if !ok {
		return d.Decoder.DecodeListItem(ctx, data, revision, newItem)
	}
	key, err := list.key.AuthenticatedData(), list.err
	if err == nil {
		var obj runtime.Object
		if obj, err = d.Decoder.DecodeListItem(ctx, data, revision, newItem); err != nil {
			err = newDecodeError(err)
		} else if err = d.store.identify(key, obj); err == nil {
			return obj, nil
		}
		etcdmetrics.RecordDecodeError(d.store.config.Resource)
	}
	list.leftOut = true
	d.store.note(ctx, string(key), int64(revision), err)
	return newItem(), nil
}

// watchCodec decodes for watches.
type watchCodec struct {
	runtime.Codec
	store *Store
}

func (c watchCodec) Decode(labelled []byte, _ *schema.GroupVersionKind, _ runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	data, key, err := unlabel(labelled)
	if err == nil && etcdwatch.IsOmitted(data) {
		obj, err := c.store.removed(string(key), "") // the library sets the revision
		return obj, nil, err
	}
	if err == nil {
		var obj runtime.Object
		if obj, err = c.store.decodeShared(data, key); err == nil {
			return obj, nil, nil
		}
		etcdmetrics.RecordDecodeError(c.store.config.Resource)
	}
	return &placeholder{key: string(key), err: err}, nil, nil
}

// decodeShared is decode, but may return an object that shares memory with others. Events
// of a watch share their objects, too, so these are never modified.
func (s *Store) decodeShared(data, key []byte) (runtime.Object, error) {
	if s.config.DecodeShared != nil {
		if obj := s.config.DecodeShared(data); obj != nil {
			return obj, s.identify(key, obj)
		}
	}
	return s.decode(data, key)
}

// decode returns the object with the key. As in a list or a get, a value without a
// kind is decoded as the kind of the resource.
func (s *Store) decode(data, key []byte) (runtime.Object, error) {
	obj, _, err := s.config.Codec.Decode(data, nil, s.config.NewFunc())
	if err != nil {
		return nil, newDecodeError(err)
	}
	return obj, s.identify(key, obj)
}

// identify returns an error if the object does not belong to the key.
func (s *Store) identify(key []byte, obj runtime.Object) error {
	if got := reflect.TypeOf(obj); got != s.kind {
		return &readError{fmt.Errorf("it is a %v instead of a %v", got.Elem(), s.kind.Elem())}
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return &readError{err}
	}
	namespace, name, rest := accessor.GetNamespace(), accessor.GetName(), key[min(len(s.prefix), len(key)):]
	if n := len(namespace); n > 0 && len(rest) > n && string(rest[:n]) == namespace && rest[n] == '/' {
		namespace, rest = "", rest[n+1:]
	}
	if namespace != "" || string(rest) != name {
		return &readError{fmt.Errorf("it is the object %q of the namespace %q", accessor.GetName(), accessor.GetNamespace())}
	}
	return nil
}

// placeholder replaces an object that cannot be read in a watch. It is of no stored
// kind, so no selector matches it.
type placeholder struct {
	metav1.TypeMeta
	metav1.ObjectMeta // only its resourceVersion is set
	key               string
	err               error
}

// DeepCopyObject returns a copy.
func (p *placeholder) DeepCopyObject() runtime.Object {
	c := *p
	c.ObjectMeta = *p.ObjectMeta.DeepCopy()
	return &c
}

// label appends the key to a value, or to the error if the value could not be
// decrypted.
func label(data, key []byte, err error) []byte {
	var failed byte
	if err != nil {
		data, failed = []byte(err.Error()), 1
	}
	labelled := make([]byte, 0, len(data)+len(key)+5)
	labelled = append(labelled, data...)
	labelled = append(labelled, key...)
	labelled = binary.LittleEndian.AppendUint32(labelled, uint32(len(key)))
	return append(labelled, failed)
}

// unlabel reverses label.
func unlabel(labelled []byte) (data, key []byte, err error) {
	end := len(labelled) - 5
	begin := end - int(binary.LittleEndian.Uint32(labelled[end:]))
	data, key = labelled[:begin:begin], labelled[begin:end]
	if labelled[len(labelled)-1] != 0 {
		return nil, key, errors.New(string(data))
	}
	return data, key, nil
}
