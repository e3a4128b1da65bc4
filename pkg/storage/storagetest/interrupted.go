// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// BeforeDelete returns a storage that calls do once, before it deletes an object: what
// another client does at this moment.
func BeforeDelete(s storage.Interface, do func()) storage.Interface {
	return &interrupted{s, do}
}

type interrupted struct {
	storage.Interface
	before func()
}

// Delete implements storage.Interface.
func (s *interrupted) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts)
}
