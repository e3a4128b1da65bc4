// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// encodings has bodies that do not match their content type or encoding.
func encodings(p paths) (requests []Request) {
	add := func(name, contentType, body string) {
		requests = append(requests, Request{Name: name, Method: http.MethodPost, Path: p.pods() + dryRun, Header: typed(contentType), Body: []byte(body)})
	}
	pod := object("Pod", "p", obj{"spec": obj{"containers": list{withResources(0)}}})
	valid := []struct{ contentType, body string }{
		{asJSON, string(asBytes(pod))}, {asYAML, string(asBytes(pod))}, {asCBOR, asCBORBytes(pod)}, {asProto, string(protoPod("1"))},
	}
	for _, v := range valid {
		for _, contentType := range []string{asJSON, asYAML, asCBOR, asProto, asApply, "", "text/plain", "application/json; charset=utf-16", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "*/*", strings.Repeat("a", 5000) + "/b"} {
			add(v.contentType+" as "+contentType[:min(len(contentType), 40)], contentType, v.body)
		}
		for cut := 1; cut < len(v.body); cut += 1 + len(v.body)/12 {
			add(fmt.Sprint(cut, " bytes of ", v.contentType), v.contentType, v.body[:cut])
		}
		add("twice "+v.contentType, v.contentType, v.body+v.body)
		add("zeros behind "+v.contentType, v.contentType, v.body+strings.Repeat("\x00", 10_000))
		add("spaces before "+v.contentType, v.contentType, strings.Repeat(" \n\t", longText)+v.body)
	}
	in := func(field string) string {
		return `{"metadata":{"name":"p",` + field + `},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	}
	for _, contentType := range []string{asJSON, asYAML} {
		for _, test := range []struct{ name, body string }{
			{"duplicate keys", in(strings.TrimSuffix(strings.Repeat(`"a":1,`, 20_000), ","))},
			{"different unknown keys", in(numbered(20_000, `"a%d":1`, ","))},
			{"long key", in(`"` + strings.Repeat("k", longText) + `":1`)},
			{"duplicate long keys", in(strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("k", 1000)+`":1,`, 200), ","))},
			{"keys in other cases", in(`"Name":"q","NAME":"r","nAmE":"s"`)},
			{"invalid UTF-8", in(`"annotations":{"a":"` + strings.Repeat("\xff\xc0\x80", 10_000) + `"}`)},
			{"invalid UTF-8 in a key", in(`"` + strings.Repeat("\xed\xa0\x80", 10_000) + `":1`)},
			{"escapes", in(`"annotations":{"a":"` + strings.Repeat(`\u0000\ud800`, 10_000) + `"}`)},
			{"byte order mark", "\ufeff" + in(`"a":1`)},
			{"digits", in(`"generation":` + strings.Repeat("9", longText))},
			{"fraction", in(`"generation":0.` + strings.Repeat("3", longText))},
			{"exponent", in(`"generation":1e` + strings.Repeat("9", 1000))},
			{"minus nothing", in(`"generation":-0`)},
			{"comments", strings.Repeat("# c\n", longText/4) + in(`"a":1`)},
			{"documents", strings.Repeat("---\n", longText/4) + in(`"a":1`)},
			{"times", in(`"creationTimestamp":"` + strings.Repeat("9", 10_000) + `-01-01T00:00:00Z"`)},
			{"list of kinds", `{"kind":"List","apiVersion":"v1","items":[` + strings.TrimSuffix(strings.Repeat("{},", 10_000), ",") + `]}`},
			{"status", `{"kind":"Status","apiVersion":"v1"}`},
			{"long kind", `{"kind":"` + strings.Repeat("K", longText) + `","apiVersion":"` + strings.Repeat("v/", 10_000) + `"}`},
		} {
			add(test.name+" in "+contentType, contentType, test.body)
		}
	}
	for _, body := range []string{
		"a: !!binary " + strings.Repeat("A", longText), "a: !!float 1e999", "? [a]\n: b", "a: 2026-01-01", "a: 0o777", "a: .inf", "%YAML 9.9\n---\na: 1", "a: &x 1\nb: *y", "{a: {b: *c}}",
		"!!python/object:os.system x", strings.Repeat("&a ", 10_000), strings.Repeat("? ", 10_000), "a: |9\n" + strings.Repeat(" ", longText), strings.Repeat("\t", 10_000), "a: \"" + strings.Repeat("\\U0010ffff", 10_000) + "\"",
		numbered(10_000, "k%d: &a%[1]d v", "\n"), "a: " + strings.Repeat("!t ", 10_000),
	} {
		add("YAML "+body[:min(len(body), 20)], asYAML, body)
	}
	const self = "\xd9\xd9\xf7"
	for _, body := range []string{
		"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", "\xbb\x7f\xff\xff\xff\xff\xff\xff\xff", "\x5b\x00\x00\x00\x7f\xff\xff\xff\xff", "\x7b\xff\xff\xff\xff\xff\xff\xff\xff", "\x9a\x7f\xff\xff\xff", // lengths of what is not there
		"\xa1\x61a\xc2\x5a\x00\x01\x00\x00" + strings.Repeat("\xff", 1<<16), // a number of 65,536 bytes
		"\xbf" + strings.Repeat("\x61a\x01", 10_000) + "\xff", "\x9f" + strings.Repeat("\xf6", 10_000) + "\xff", "\x7f" + strings.Repeat("\x61a", 10_000) + "\xff",
		strings.Repeat("\xc1", 10_000) + "\x01", "\xa1\x61a\xfb\x7f\xf8\x00\x00\x00\x00\x00\x00", "\xa1\x01\x02", "\xa1\xf6\xf6", "\xff", "\xf8\x00", "\xa1\x62\xff\xfe\x01", "\xc1\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		add(fmt.Sprintf("CBOR %x", body[:min(len(body), 12)]), asCBOR, self+body)
	}
	return class("encodings", requests)
}

// numbered repeats a format with 0 up to n.
func numbered(n int, format, separator string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(separator)
		}
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// asCBORBytes encodes JSON as CBOR, with the tag by which the server knows it.
func asCBORBytes(value any) string {
	data, err := direct.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encode as CBOR: %v", err)) // obj and list always can be
	}
	return string(data)
}
