// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Format is the form in which a request gets a table.
type Format struct {
	// Version is the version of the Table and of PartialObjectMetadata.
	Version schema.GroupVersion
	// Include is what each row has of its object.
	Include metav1.IncludeObjectPolicy
	// Convert returns the object of a row in the version of the request, for
	// metav1.IncludeObject.
	Convert func(obj runtime.Object) (runtime.Object, error)
}

type formatKey struct{}

// WithFormat returns the context of a request for a list in which List returns a
// table. The request must accept JSON without a conversion.
func WithFormat(ctx context.Context, format Format) context.Context {
	return context.WithValue(ctx, formatKey{}, format)
}

// Kind is a kind of objects that are listed.
type Kind interface {
	NewList() runtime.Object
	rest.TableConvertor
}

// List returns the list of objects of the kind. In a context with a Format, it returns a
// table that is encoded row by row. The library converts all objects to rows and all
// rows to JSON before it sends the first, which takes more memory than the list
// several times over.
func List(ctx context.Context, kind Kind, listObjects func() (runtime.Object, error)) (runtime.Object, error) {
	list, err := listObjects()
	format, ok := ctx.Value(formatKey{}).(Format)
	if err != nil || !ok {
		return list, err
	}
	head := kind.NewList()
	from, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("convert to a table: %w", err)
	}
	to, err := meta.ListAccessor(head)
	if err != nil {
		return nil, fmt.Errorf("convert to a table: %w", err)
	}
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetContinue(from.GetContinue())
	to.SetRemainingItemCount(from.GetRemainingItemCount())
	return &stream{format: format, head: head, metadata: to, list: list, convert: func(obj runtime.Object) (*metav1.Table, error) {
		return kind.ConvertToTable(ctx, obj, &metav1.TableOptions{})
	}}, nil
}

// stream is a list that is encoded as a Table. It is a CacheableObject, because
// encoders let those encode themselves. It caches nothing.
type stream struct {
	format     Format
	head, list runtime.Object // head has the metadata of the list, and no items
	metadata   metav1.ListInterface
	convert    func(obj runtime.Object) (*metav1.Table, error)
}

var (
	_ runtime.CacheableObject = &stream{}
	_ metav1.ListMetaAccessor = &stream{}
)

// GetObjectKind implements runtime.Object.
func (s *stream) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// GetListMeta implements metav1.ListMetaAccessor.
func (s *stream) GetListMeta() metav1.ListInterface { return s.metadata }

// DeepCopyObject implements runtime.Object. The stream is never changed.
func (s *stream) DeepCopyObject() runtime.Object { return s }

// GetObject implements runtime.CacheableObject.
func (s *stream) GetObject() runtime.Object { return s }

// CacheEncode writes the Table as the library would encode it.
func (s *stream) CacheEncode(_ runtime.Identifier, _ func(runtime.Object, io.Writer) error, w io.Writer) error {
	table, err := s.convert(s.head)
	if err != nil {
		return err
	}
	table.SetGroupVersionKind(s.format.Version.WithKind("Table"))
	head, err := json.Marshal(table)
	if err != nil {
		return fmt.Errorf("encode a table: %w", err)
	}
	// By a first write of up to four bytes the library recognizes a response that
	// it may compress although the write is short.
	if _, err := w.Write(head[:1]); err != nil {
		return err
	}
	head = append(head[1:], '\n')
	if meta.LenList(s.list) == 0 {
		_, err := w.Write(head)
		return err
	}
	prefix, ok := bytes.CutSuffix(head, []byte("[]}\n"))
	if !ok {
		prefix, ok = bytes.CutSuffix(head, []byte("null}\n")) // of the library's convertor
	}
	if !ok {
		return fmt.Errorf("encode a table: %q does not end in rows", head)
	}
	buffer := bytes.NewBuffer(append(prefix, '['))
	encoder := json.NewEncoder(buffer)
	err = meta.EachListItem(s.list, func(obj runtime.Object) error {
		rows, err := s.rows(obj)
		if err != nil {
			return err
		}
		for i := range rows {
			if err := encoder.Encode(&rows[i]); err != nil {
				return fmt.Errorf("encode a row: %w", err)
			}
			buffer.Truncate(buffer.Len() - 1) // the newline
			if _, err := w.Write(buffer.Bytes()); err != nil {
				return err
			}
			buffer.Reset()
			buffer.WriteByte(',')
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = w.Write([]byte("]}\n"))
	return err
}

// rows returns the row of an object, in a slice.
func (s *stream) rows(obj runtime.Object) ([]metav1.TableRow, error) {
	table, err := s.convert(obj)
	if err != nil {
		return nil, err
	}
	for i := range table.Rows {
		object := &table.Rows[i].Object
		switch s.format.Include {
		case metav1.IncludeNone:
			object.Object = nil
		case metav1.IncludeObject:
			if object.Object, err = s.format.Convert(object.Object); err != nil {
				return nil, fmt.Errorf("convert the object of a row: %w", err)
			}
		default:
			accessor, err := meta.Accessor(object.Object)
			if err != nil {
				return nil, fmt.Errorf("read the metadata of a row: %w", err)
			}
			partial := meta.AsPartialObjectMetadata(accessor)
			partial.SetGroupVersionKind(s.format.Version.WithKind("PartialObjectMetadata"))
			object.Object = partial
		}
	}
	return table.Rows, nil
}
