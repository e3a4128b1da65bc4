// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package coregroup_test

import (
	"encoding/json"
	"flag"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	tenancyfuzzer "github.com/borough-io/borough/pkg/apis/tenancy/fuzzer"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	coregroup.Install(scheme)
	return scheme
}

var objects = flag.Int("objects", 1000, "how many objects of each kind TestBothGroups converts")

// TestBothGroups encodes random objects in one group and decodes them from there, in JSON
// and in protobuf. Nothing may be lost but what core/v1 does not have.
func TestBothGroups(t *testing.T) {
	t.Parallel()
	scheme := newScheme()
	codecs := serializer.NewCodecFactory(scheme)
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	for _, internal := range []runtime.Object{&tenancy.Namespace{}, &tenancy.LimitRange{}, &tenancy.ResourceQuota{}, &tenancy.Pod{}} {
		t.Run(reflect.TypeOf(internal).Elem().Name(), func(t *testing.T) {
			t.Parallel()
			fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, tenancyfuzzer.NewFuncs(scheme)), rand.NewSource(seed), codecs)
			for i := range *objects {
				obj := reflect.New(reflect.TypeOf(internal).Elem()).Interface().(runtime.Object)
				fill.Fill(obj)
				want := obj.DeepCopyObject()
				if ns, ok := want.(*tenancy.Namespace); ok {
					ns.Spec.DeletionProtection, ns.Status.Termination = false, nil
				}
				mediaType := []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf}[i%2]
				got := through(t, codecs, corev1.SchemeGroupVersion, mediaType, obj)
				if !equality.Semantic.DeepEqual(want, got) {
					t.Fatalf("through core/v1 in %s: (-want +got)\n%s", mediaType, cmp.Diff(want, got))
				}
				if got = through(t, codecs, v1.SchemeGroupVersion, mediaType, obj); !equality.Semantic.DeepEqual(obj, got) {
					t.Fatalf("through our group in %s: (-want +got)\n%s", mediaType, cmp.Diff(obj, got))
				}
			}
		})
	}
}

// through encodes and decodes an object in a version. The managed fields of an object are
// those of that version while it is encoded.
func through(t *testing.T, codecs serializer.CodecFactory, gv schema.GroupVersion, mediaType string, obj runtime.Object) runtime.Object {
	t.Helper()
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	internal := schema.GroupVersion{Group: gv.Group, Version: runtime.APIVersionInternal}
	data, err := runtime.Encode(codecs.CodecForVersions(info.Serializer, nil, gv, nil), obj)
	if err != nil {
		t.Fatal(err)
	}
	decoded, gvk, err := codecs.CodecForVersions(nil, info.Serializer, nil, internal).Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if gvk.GroupVersion() != gv {
		t.Fatalf("encoded as %s", gvk)
	}
	return decoded
}

// TestLists converts a list and its managed fields, and changes nothing in the original.
func TestLists(t *testing.T) {
	t.Parallel()
	scheme := newScheme()
	entry := metav1.ManagedFieldsEntry{Manager: "m", APIVersion: v1.SchemeGroupVersion.String()}
	for _, list := range []runtime.Object{
		&tenancy.NamespaceList{Items: []tenancy.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{entry}}}}},
		&tenancy.LimitRangeList{Items: []tenancy.LimitRange{{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{entry}}}}},
		&tenancy.ResourceQuotaList{Items: []tenancy.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{entry}}}}},
		&tenancy.PodList{Items: []tenancy.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{entry}}}}},
	} {
		list.(metav1.ListMetaAccessor).GetListMeta().SetResourceVersion("7")
		before := list.DeepCopyObject()
		core, err := scheme.UnsafeConvertToVersion(list, corev1.SchemeGroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(core)
		if err != nil || len(items) != 1 || core.(metav1.ListMetaAccessor).GetListMeta().GetResourceVersion() != "7" {
			t.Fatalf("%T: %v, %+v", list, err, core)
		}
		item := items[0].(metav1.Object)
		if fields := item.GetManagedFields(); item.GetName() != "a" || len(fields) != 1 || fields[0].APIVersion != "v1" {
			t.Errorf("%T: %+v", list, fields)
		}
		if !equality.Semantic.DeepEqual(before, list) {
			t.Errorf("%T was changed: %s", list, cmp.Diff(before, list))
		}
		// The managed fields stay in the version of core/v1.
		if err := meta.EachListItem(before, func(item runtime.Object) error {
			item.(metav1.Object).GetManagedFields()[0].APIVersion = "v1"
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		back, err := scheme.UnsafeConvertToVersion(core, schema.GroupVersion{Version: runtime.APIVersionInternal})
		if err != nil || !equality.Semantic.DeepEqual(before, back) {
			t.Errorf("%T and back: %v, %s", list, err, cmp.Diff(before, back))
		}
	}
}

// TestConvertManagedFields checks that the list of a request for the core group is
// converted without a copy, and that what its items share with others is not changed.
func TestConvertManagedFields(t *testing.T) {
	t.Parallel()
	stored := []metav1.ManagedFieldsEntry{{Manager: "m", APIVersion: v1.SchemeGroupVersion.String()}}
	for group, want := range map[string]string{coregroup.GroupName: "v1", tenancy.GroupName: v1.SchemeGroupVersion.String()} {
		ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{IsResourceRequest: true, APIGroup: group, Resource: "pods"})
		list := &tenancy.PodList{Items: []tenancy.Pod{{ObjectMeta: metav1.ObjectMeta{ManagedFields: stored}}}}
		if err := coregroup.ConvertManagedFields(ctx, list); err != nil {
			t.Fatal(err)
		}
		if got := list.Items[0].ManagedFields[0].APIVersion; got != want {
			t.Errorf("in a request for %q: %s, want %s", group, got, want)
		}
		converted, err := newScheme().UnsafeConvertToVersion(list, corev1.SchemeGroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		pods := converted.(*corev1.PodList).Items
		if pods[0].ManagedFields[0].APIVersion != "v1" {
			t.Errorf("in a request for %q, converted: %v", group, pods[0].ManagedFields)
		}
		if shared := unsafe.Pointer(&pods[0]) == unsafe.Pointer(&list.Items[0]); shared != (group == coregroup.GroupName) {
			t.Errorf("in a request for %q: shares memory: %v", group, shared)
		}
		if stored[0].APIVersion != v1.SchemeGroupVersion.String() {
			t.Fatalf("the stored entry was changed: %v", stored)
		}
	}
}

// TestUpdatedObjectInfo writes an object with managed fields in the version of core/v1. They
// are those of another kind if the resource is not shared.
func TestUpdatedObjectInfo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ group, resource, want string }{
		{coregroup.GroupName, "pods", v1.SchemeGroupVersion.String()},
		{tenancy.GroupName, "pods", v1.SchemeGroupVersion.String()},
		{coregroup.GroupName, "events", "v1"},
		{"example.com", "pods", "v1"},
	} {
		ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{IsResourceRequest: true, APIGroup: test.group, Resource: test.resource})
		sent := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", APIVersion: "v1"}}}}
		got, err := coregroup.UpdatedObjectInfo(rest.DefaultUpdatedObjectInfo(sent)).UpdatedObject(ctx, &tenancy.Pod{})
		if err != nil {
			t.Fatal(err)
		}
		if version := got.(*tenancy.Pod).ManagedFields[0].APIVersion; version != test.want {
			t.Errorf("%s of %q: got %s, want %s", test.resource, test.group, version, test.want)
		}
	}
}

// TestWithOtherGroup checks which rights a rule gives in the other group.
func TestWithOtherGroup(t *testing.T) {
	t.Parallel()
	const own = "tenancy.borough.io"
	for name, test := range map[string]struct {
		rule rbacv1.PolicyRule
		want []string // group/resource
	}{
		"ours":              {rbacv1.PolicyRule{APIGroups: []string{own}, Resources: []string{"pods", "projects"}}, []string{"/pods"}},
		"core":              {rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/status", "secrets"}}, []string{own + "/pods/status"}},
		"only ours":         {rbacv1.PolicyRule{APIGroups: []string{own}, Resources: []string{"namespacepurges"}}, nil},
		"only core":         {rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}}, nil},
		"both":              {rbacv1.PolicyRule{APIGroups: []string{"", own}, Resources: []string{"pods"}}, nil},
		"another":           {rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"*"}}, nil},
		"all groups":        {rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"pods"}}, nil},
		"core and another":  {rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"limitranges"}}, []string{own + "/limitranges"}},
		"a subresource":     {rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"*/finalize"}}, []string{own + "/namespaces/finalize"}},
		"all resources":     {rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"*"}}, prefixed(own+"/", coregroup.Resources())},
		"no resources":      {rbacv1.PolicyRule{NonResourceURLs: []string{"/x"}}, nil},
		"an unknown prefix": {rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods2"}}, nil},
	} {
		rule := test.rule
		rule.Verbs, rule.ResourceNames = []string{"get"}, []string{"n"}
		got := coregroup.WithOtherGroup([]rbacv1.PolicyRule{rule})
		var more []string
		for _, r := range got[1:] {
			more = append(more, prefixed(r.APIGroups[0]+"/", r.Resources)...)
			if !slices.Equal(r.Verbs, rule.Verbs) || !slices.Equal(r.ResourceNames, rule.ResourceNames) {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if diff := cmp.Diff(test.want, more); diff != "" || !equality.Semantic.DeepEqual(got[0], rule) {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func prefixed(prefix string, names []string) []string {
	var all []string
	for _, name := range names {
		all = append(all, prefix+name)
	}
	return all
}

// TestKeepManagers checks who manages what core/v1 does not have, after an update there.
func TestKeepManagers(t *testing.T) {
	t.Parallel()
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: v1.SchemeGroupVersion.String(), FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const labels, protection = `"f:metadata":{"f:labels":{"f:a":{}}}`, `"f:spec":{"f:deletionProtection":{}}`
	const termination = `"f:status":{"f:termination":{"f:lastError":{}}}`
	for name, test := range map[string]struct{ before, updated, want []metav1.ManagedFieldsEntry }{
		"none": {},
		"another manager": {
			[]metav1.ManagedFieldsEntry{entry("a", `{`+protection+`}`)}, []metav1.ManagedFieldsEntry{entry("a", `{`+protection+`}`), entry("b", `{`+labels+`}`)},
			[]metav1.ManagedFieldsEntry{entry("a", `{`+protection+`}`), entry("b", `{`+labels+`}`)},
		},
		"the same manager": {
			[]metav1.ManagedFieldsEntry{entry("a", `{`+labels+`,`+protection+`}`)}, []metav1.ManagedFieldsEntry{entry("a", `{`+labels+`}`)},
			[]metav1.ManagedFieldsEntry{entry("a", `{`+labels+`,`+protection+`}`)},
		},
		"a manager of nothing else": {
			[]metav1.ManagedFieldsEntry{entry("a", `{`+labels+`,`+termination+`}`)}, nil,
			[]metav1.ManagedFieldsEntry{entry("a", `{`+termination+`}`)},
		},
		"a manager of other fields":                  {[]metav1.ManagedFieldsEntry{entry("a", `{`+labels+`}`)}, nil, nil},
		"a manager of the spec and the status alone": {[]metav1.ManagedFieldsEntry{entry("a", `{"f:spec":{},"f:status":{}}`)}, nil, nil},
		"fields that cannot be read": {
			[]metav1.ManagedFieldsEntry{entry("a", `{`)}, []metav1.ManagedFieldsEntry{entry("b", `{`)}, []metav1.ManagedFieldsEntry{entry("b", `{`)},
		},
	} {
		before, _ := json.Marshal(test.before)
		got := coregroup.KeepManagers(test.updated, test.before, false)
		if diff := cmp.Diff(test.want, got); diff != "" && len(test.want)+len(got) > 0 {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		if after, _ := json.Marshal(test.before); string(after) != string(before) {
			t.Errorf("%s: the fields before were changed: %s", name, after)
		}
	}
	old := []metav1.ManagedFieldsEntry{entry("a", `{`+labels+`,`+protection+`}`), entry("b", `{`+labels+`}`)}
	for _, updated := range [][]metav1.ManagedFieldsEntry{
		{entry("a", `{`+labels+`}`), entry("b", `{`+labels+`}`)},
		{entry("b", `{`+labels+`}`), entry("a", `{`+labels+`}`)}, // entries are in the order of their times
	} {
		for i := range updated {
			updated[i].Time = &metav1.Time{Time: time.Unix(1, 0)}
		}
		if diff := cmp.Diff(old, coregroup.KeepManagers(updated, old, false)); diff != "" {
			t.Errorf("without a change (-want +got)\n%s", diff)
		}
		if got := coregroup.KeepManagers(updated, old, true); !got[0].Time.Equal(updated[0].Time) {
			t.Errorf("with a change of a value, the time is %v, want %v", got[0].Time, updated[0].Time)
		}
	}
}
