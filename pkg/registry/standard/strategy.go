// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standard

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/borough-io/borough/pkg/registry/errorlimit"
)

// Strategy is what the strategies of most kinds have in common: objects are written as
// they are sent, with no warnings. The strategy of a kind embeds it, and has methods of
// its own where the kind differs.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	errorlimit.Strategy
}

// NewStrategy returns what strategies have in common.
func NewStrategy(typer runtime.ObjectTyper) Strategy {
	return Strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator}
}

// AllowUnconditionalUpdate is true: an update needs no resourceVersion.
func (Strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

// PrepareForCreate changes nothing.
func (Strategy) PrepareForCreate(context.Context, runtime.Object) {}

// PrepareForUpdate changes nothing.
func (Strategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

// Canonicalize changes nothing: defaulting has filled in what is missing.
func (Strategy) Canonicalize(runtime.Object) {}

// WarningsOnCreate warns of nothing.
func (Strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate warns of nothing.
func (Strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
