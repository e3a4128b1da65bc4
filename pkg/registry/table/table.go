// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package table converts objects to the rows that kubectl prints.
package table

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// None is the cell of what is not set, as kubectl prints it.
const None = "<none>"

// Row gives the cells of one object, in the order of the columns, and the
// conditions of its row, if there are any.
type Row[T runtime.Object] func(obj T) ([]any, []metav1.TableRowCondition)

type convertor[T runtime.Object] struct {
	columns []metav1.TableColumnDefinition
	row     Row[T]
}

// NewConvertor returns a convertor for a kind, and for lists of it, whose
// internal type is T.
func NewConvertor[T runtime.Object](columns []metav1.TableColumnDefinition, row Row[T]) rest.TableConvertor {
	return convertor[T]{columns: columns, row: row}
}

func (c convertor[T]) ConvertToTable(_ context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{Rows: []metav1.TableRow{}} // also without rows, an empty list
	add := func(item runtime.Object) error {
		obj, ok := item.(T)
		if !ok {
			return fmt.Errorf("convert to a table: expected %T, got %T", obj, item)
		}
		cells, conditions := c.row(obj)
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells:      cells,
			Conditions: conditions,
			Object:     runtime.RawExtension{Object: item},
		})
		return nil
	}

	if list, err := meta.ListAccessor(object); err == nil {
		table.ResourceVersion = list.GetResourceVersion()
		table.Continue = list.GetContinue()
		table.RemainingItemCount = list.GetRemainingItemCount()
		if err := meta.EachListItem(object, add); err != nil {
			return nil, err
		}
	} else {
		if err := add(object); err != nil {
			return nil, err
		}
		if common, err := meta.CommonAccessor(object); err == nil {
			table.ResourceVersion = common.GetResourceVersion()
		}
	}

	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = c.columns
	}
	return table, nil
}

var metadataDoc = metav1.ObjectMeta{}.SwaggerDoc()

// NameColumn is the first column of every kind.
func NameColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: metadataDoc["name"]}
}

// AgeColumn holds how long ago an object was created; its cells are made by
// Age.
func AgeColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: metadataDoc["creationTimestamp"]}
}

// Age returns how long ago t was in human-readable form, or <unknown> for no time.
func Age(t metav1.Time) string { return metatable.ConvertToHumanReadableDateType(t) }
