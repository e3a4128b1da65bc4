// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	bodies = flag.Int("bodies", 25, "number of generated bodies to send; -1 is all")
	seed   = flag.Uint64("seed", 0, "the seed of the choice; 0 is a random one")
)

// counted are the packages whose basic blocks are counted: all that process a body,
// except generated code and the standard library.
var counted = []string{
	"github.com/borough-io/borough/pkg/admission/...",
	"github.com/borough-io/borough/pkg/apis/rbac/...",
	"github.com/borough-io/borough/pkg/apis/tenancy",
	"github.com/borough-io/borough/pkg/requestlimits",
	"github.com/borough-io/borough/pkg/apis/tenancy/v1",
	"github.com/borough-io/borough/pkg/apis/tenancy/validation",
	"github.com/borough-io/borough/pkg/apiserver",
	"github.com/borough-io/borough/pkg/corepod/...",
	"github.com/borough-io/borough/pkg/registry/...",
	"github.com/distribution/reference",
	"github.com/pmezard/go-difflib/difflib",
	"go.yaml.in/yaml/v2",
	"go.yaml.in/yaml/v3",
	"gopkg.in/evanphx/json-patch.v4",
	"gopkg.in/inf.v0",
	"k8s.io/apimachinery/pkg/api/resource",
	"k8s.io/apimachinery/pkg/api/validation",
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation",
	"k8s.io/apimachinery/pkg/runtime",
	"k8s.io/apimachinery/pkg/runtime/serializer/...",
	"k8s.io/apimachinery/pkg/util/errors",
	"k8s.io/apimachinery/pkg/util/managedfields/...",
	"k8s.io/apimachinery/pkg/util/strategicpatch",
	"k8s.io/apimachinery/pkg/util/validation/...",
	"k8s.io/apiserver/pkg/endpoints/handlers/...",
	"k8s.io/apiserver/pkg/registry/rest",
	"k8s.io/component-helpers/resource",
	"sigs.k8s.io/json/...",
	"sigs.k8s.io/structured-merge-diff/v6/...",
	"sigs.k8s.io/yaml",
	"github.com/borough-io/borough/test/cost", // counts only if it is counted itself
}

// What a request of N bytes may cost. docs/reference/request-limits.md has the
// figures.
const (
	baseBytes, bytesPerByte   = 32 << 20, 2500
	baseBlocks, blocksPerByte = 50_000_000, 1000
	// A request that is four times as large may cost growth times as much.
	growth = 6
)

// TestEveryKind checks that there is an object of every namespaced kind to change.
func TestEveryKind(t *testing.T) {
	for _, kind := range kinds() {
		if !slices.ContainsFunc(setup, func(o object) bool { return o.path == kind.path() }) {
			t.Errorf("setup has no %s", kind.Kind)
		}
	}
}

// TestCost sends bodies with one list or map of the maximum length, and of a quarter
// of it. The cost must be at most a multiple of the size, and must not grow faster.
func TestCost(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it builds a server that counts the code it executes, which takes minutes")
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-seed=%d", *seed)
	program := filepath.Join(t.TempDir(), "cost")
	build := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+strings.Join(counted, ","), "-o", program, ".")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, output)
	}
	run := exec.Command(program, "-bodies="+strconv.Itoa(*bodies), "-seed="+strconv.FormatUint(*seed, 10))
	run.Env = append(run.Environ(), "GOCOVERDIR="+t.TempDir()) // it writes the counters there when it ends
	var errorOutput bytes.Buffer
	run.Stderr = &errorOutput
	output, err := run.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", run, err, errorOutput.String())
	}
	results := json.NewDecoder(bytes.NewReader(output))
	for {
		var r Result
		if err := results.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		t.Run(r.Name, func(t *testing.T) {
			t.Logf("%+v, then %+v", r.Quarter, r.Whole)
			size := uint64(r.Whole.Size + r.Stored)
			if r.Whole.Code >= 500 {
				t.Errorf("got code %d", r.Whole.Code)
			}
			check(t, "bytes", r.Quarter.Bytes, r.Whole.Bytes, baseBytes, baseBytes+bytesPerByte*size)
			check(t, "blocks", r.Quarter.Blocks, r.Whole.Blocks, baseBlocks, baseBlocks+blocksPerByte*size)
		})
	}
}

func check(t *testing.T, what string, quarter, whole, base, limit uint64) {
	t.Helper()
	if whole == 0 {
		t.Errorf("counted no %s", what)
	}
	if whole > limit {
		t.Errorf("got %d %s, want at most %d", whole, what, limit)
	}
	if whole > base && whole > growth*quarter {
		t.Errorf("got %d %s, but only %d at a quarter of the size", whole, what, quarter)
	}
}
