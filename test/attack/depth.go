// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"fmt"
	"strings"
)

// depths has values in values in values.
func depths(p paths) (requests []Request) {
	add := func(name, contentType, method, path, body string) {
		requests = append(requests, Request{Name: name, Method: method, Path: path, Header: typed(contentType), Body: []byte(body)})
	}
	for _, n := range []int{100, 9_000, 200_000} {
		nest := func(open, middle, shut string) string {
			return strings.Repeat(open, n) + middle + strings.Repeat(shut, n)
		}
		for _, nested := range []struct{ what, value string }{
			{"lists", nest("[", "", "]")}, {"objects", nest(`{"a":`, "1", "}")}, {"open lists", strings.Repeat("[", n)}, {"open objects", strings.Repeat(`{"a":`, n)},
		} {
			name, value := fmt.Sprintf("%d %s", n, nested.what), nested.value
			for _, contentType := range []string{asJSON, asYAML} {
				add(name+" alone", contentType, "POST", p.pods()+dryRun, value)
				add(name+" in an unknown field", contentType, "POST", p.pods()+dryRun, `{"metadata":{"name":"p"},"spec":{"a":`+value+`,"containers":[{"name":"c","image":"i"}]}}`)
				add(name+" in place of text", contentType, "POST", p.pods()+dryRun, `{"metadata":{"name":`+value+`}}`)
			}
			add(name+" in managedFields", asJSON, "PUT", p.pod()+dryRun,
				`{"metadata":{"name":"there","managedFields":[{"manager":"m","operation":"Update","apiVersion":"`+groupVersion+`","fieldsType":"FieldsV1","fieldsV1":`+value+`}]},"spec":{"containers":[{"name":"c0","image":"i:1"}]}}`)
			for _, contentType := range []string{asMerge, asStrategic, asApply} {
				add(name+" in a patch", contentType, "PATCH", p.pod()+dryRun+"&fieldManager=m", `{"apiVersion":"`+groupVersion+`","kind":"Pod","metadata":{"name":"there","annotations":`+value+`},"spec":`+value+`}`)
			}
			add(name+" in a JSON patch", asJSONPatch, "PATCH", p.pod()+dryRun, `[{"op":"add","path":"/metadata/annotations","value":`+value+`}]`)
		}
		add(fmt.Sprint(n, " steps of a JSON pointer"), asJSONPatch, "PATCH", p.pod()+dryRun, `[{"op":"remove","path":"`+strings.Repeat("/a", n)+`"}]`)
		add(fmt.Sprint(n, " blocks of YAML"), asYAML, "POST", p.pods()+dryRun, strings.Repeat("- ", n)+"a")
		// 0x81 is a list of one, 0xa1 an object of one, 0x61 0x61 the text "a".
		add(fmt.Sprint(n, " lists in CBOR"), asCBOR, "POST", p.pods()+dryRun, "\xd9\xd9\xf7"+strings.Repeat("\x81", n)+"\x80")
		add(fmt.Sprint(n, " objects in CBOR"), asCBOR, "POST", p.pods()+dryRun, "\xd9\xd9\xf7"+strings.Repeat("\xa1\x61\x61", n)+"\xa0")
	}
	for _, n := range []int{5, 12, 40} { // each knows the one before ten times
		var laughs strings.Builder
		laughs.WriteString("a0: &a0 [x]\n")
		for i := 1; i < n; i++ {
			fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
		}
		add(fmt.Sprint(n, " aliases of aliases"), asYAML, "POST", p.pods()+dryRun, laughs.String())
		add(fmt.Sprint(n, " aliases of aliases, applied"), asApply, "PATCH", p.pod()+dryRun+"&fieldManager=m", laughs.String())
	}
	longText := "a: &a " + strings.Repeat("x", 50000) + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", 3000), ",") + "]\n"
	add("aliases of a long text", asYAML, "POST", p.pods()+dryRun, longText)
	add("aliases of a long text, applied", asApply, "PATCH", p.pod()+dryRun+"&fieldManager=m", longText)
	add("aliases of a long text in the options of a delete", asYAML, "DELETE", p.pod()+dryRun, longText)
	add("an alias of itself", asYAML, "POST", p.pods()+dryRun, "a: &a [*a]")
	add("a merge of itself", asYAML, "POST", p.pods()+dryRun, "a: &a\n  <<: *a\n")
	return class("depth", requests)
}
