// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// message is what the generated protobuf code gives every kind.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// TestWireCompatibleWithCore fills objects of ours at random and reads them as
// core/v1 objects, and the other way round, in JSON and in protobuf. Nothing
// may be lost or land in another field: encoding again gives the same bytes.
// The types of core/v1 are only read here, so a field that core/v1 gains fails
// the test until ours has it too. Fields of ours that core/v1 lacks have the
// numbers from firstOwnNumber up, and only they: a reader of core/v1 skips them
// and reads all else.
func TestWireCompatibleWithCore(t *testing.T) {
	kinds := []struct {
		name string
		ours func() message
		core func() message
		own  []string
	}{
		{"Namespace", func() message { return &Namespace{} }, func() message { return &corev1.Namespace{} }, []string{"NamespaceSpec.DeletionProtection", "NamespaceStatus.Termination"}},
		{"NamespaceList", func() message { return &NamespaceList{} }, func() message { return &corev1.NamespaceList{} }, []string{"NamespaceSpec.DeletionProtection", "NamespaceStatus.Termination"}},
		{"LimitRange", func() message { return &LimitRange{} }, func() message { return &corev1.LimitRange{} }, nil},
		{"LimitRangeList", func() message { return &LimitRangeList{} }, func() message { return &corev1.LimitRangeList{} }, nil},
		{"ResourceQuota", func() message { return &ResourceQuota{} }, func() message { return &corev1.ResourceQuota{} }, nil},
		{"ResourceQuotaList", func() message { return &ResourceQuotaList{} }, func() message { return &corev1.ResourceQuotaList{} }, nil},
		{"Pod", func() message { return &Pod{} }, func() message { return &corev1.Pod{} }, nil},
		{"PodList", func() message { return &PodList{} }, func() message { return &corev1.PodList{} }, nil},
		{"Binding", func() message { return &Binding{} }, func() message { return &corev1.Binding{} }, nil},
	}
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), serializer.NewCodecFactory(runtime.NewScheme()))

	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			var own []string
			for range 100 {
				ours := kind.ours()
				fill.Fill(ours)
				filled := clearOwn(reflect.ValueOf(ours.DeepCopyObject()))
				own = append(own, filled...)
				checkSame(t, ours, kind.core)

				core := kind.core()
				fill.Fill(core)
				if filled := clearOwn(reflect.ValueOf(core.DeepCopyObject())); filled != nil {
					t.Fatalf("core/v1 has fields with numbers that are ours: %v", filled)
				}
				checkSame(t, core, kind.ours)
			}
			slices.Sort(own)
			if diff := cmp.Diff(kind.own, slices.Compact(own)); diff != "" {
				t.Errorf("fields with numbers from %d up (-want +got):\n%s", firstOwnNumber, diff)
			}
		})
	}
}

// checkSame reads what from encodes into objects of the other type. Reading
// the protobuf back shows that every field has the same number in both; JSON is
// compared as text.
func checkSame(t *testing.T, from message, other func() message) {
	t.Helper()

	// Protobuf does not distinguish an empty list from none, so start from a
	// message that was decoded from it.
	same := func() message { return reflect.New(reflect.TypeOf(from).Elem()).Interface().(message) }
	filled := from
	from = same()
	transfer(t, filled, from, message.Marshal, message.Unmarshal)

	// What is sent has our own fields; what comes out at the other end has not.
	shared := from.DeepCopyObject().(message)
	clearOwn(reflect.ValueOf(shared))

	inProto, back := other(), same()
	transfer(t, from, inProto, message.Marshal, message.Unmarshal)
	transfer(t, inProto, back, message.Marshal, message.Unmarshal)
	if diff := cmp.Diff(asJSON(t, shared), asJSON(t, back)); diff != "" {
		t.Fatalf("protobuf of %T read as %T and back differs (-sent +got):\n%s", from, inProto, diff)
	}
	if diff := cmp.Diff(asJSON(t, shared), asJSON(t, inProto)); diff != "" {
		t.Fatalf("protobuf of %T read as %T differs (-sent +got):\n%s", from, inProto, diff)
	}

	inJSON := other()
	transfer(t, from, inJSON,
		func(m message) ([]byte, error) { return json.Marshal(m) },
		func(m message, b []byte) error { return json.Unmarshal(b, m) })
	if diff := cmp.Diff(asJSON(t, shared), asJSON(t, inJSON)); diff != "" {
		t.Fatalf("JSON of %T read as %T differs (-sent +got):\n%s", from, inJSON, diff)
	}
}

// firstOwnNumber is the first protobuf number for fields that core/v1 does not
// have, so that core/v1 can grow without a clash.
const firstOwnNumber = 1000

// clearOwn clears all fields of a message with numbers that core/v1 does not use,
// and returns the names of those that were set. It does not descend into them,
// because their messages are not shared with core/v1.
func clearOwn(value reflect.Value) (cleared []string) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			cleared = clearOwn(value.Elem())
		}
	case reflect.Slice:
		for i := range value.Len() {
			cleared = append(cleared, clearOwn(value.Index(i))...)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			field := value.Type().Field(i)
			tag := strings.Split(field.Tag.Get("protobuf"), ",")
			if len(tag) < 2 {
				continue // not a field of the message
			}
			if number, err := strconv.Atoi(tag[1]); err != nil || number < firstOwnNumber {
				cleared = append(cleared, clearOwn(value.Field(i))...)
			} else if !value.Field(i).IsZero() {
				value.Field(i).SetZero()
				cleared = append(cleared, value.Type().Name()+"."+field.Name)
			}
		}
	}
	return cleared
}

func transfer(t *testing.T, from, to message, encode func(message) ([]byte, error), decode func(message, []byte) error) {
	t.Helper()
	sent, err := encode(from)
	if err != nil {
		t.Fatalf("encode %T: %v", from, err)
	}
	if err := decode(to, sent); err != nil {
		t.Fatalf("read %T as %T: %v", from, to, err)
	}
}

func asJSON(t *testing.T, obj message) string {
	t.Helper()
	text, err := json.MarshalIndent(obj, "", " ")
	if err != nil {
		t.Fatalf("encode %T: %v", obj, err)
	}
	return string(text)
}
