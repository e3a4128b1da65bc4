// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// protobufs has messages that no encoder would write. They are assembled by hand,
// because the encoder of the library expands quantities, which the server must not
// do.
func protobufs(p paths) (requests []Request) {
	add := func(name, method, path string, body []byte) {
		requests = append(requests, Request{Name: name, Method: method, Path: path, Header: typed(asProto), Body: body})
	}
	pod := func(name string, body []byte) { add(name, http.MethodPost, p.pods()+dryRun, body) }
	for _, hostile := range hostileQuantities {
		pod("quantity "+hostile[:min(len(hostile), 24)], protoPod(hostile))
		add("limit "+hostile[:min(len(hostile), 24)], http.MethodPost, p.limitRanges()+dryRun, unknown("LimitRange", message(
			field(1, field(1, []byte("l"))),
			field(2, field(1, message(field(1, []byte("Container")), field(2, entry("cpu", hostile)), field(3, entry("cpu", "1")))))),
		))
	}
	metadata := field(1, field(1, []byte("p")))
	spec := func(fields ...[]byte) []byte { return unknown("Pod", message(metadata, field(2, message(fields...)))) }
	for _, n := range []int{1_000, 20_000} {
		pod(fmt.Sprint(n, " empty containers"), spec(bytes.Repeat(field(2, nil), n)))
		pod(fmt.Sprint(n, " empty tolerations"), spec(bytes.Repeat(field(22, nil), n)))
		pod(fmt.Sprint(n, " specs"), unknown("Pod", message(metadata, bytes.Repeat(field(2, field(2, nil)), n))))
		pod(fmt.Sprint(n, " kinds"), message([]byte("k8s\x00"), bytes.Repeat(field(1, message(field(1, []byte(groupVersion)), field(2, []byte("Pod")))), n)))
		pod(fmt.Sprint(n, " unknown fields"), unknown("Pod", bytes.Repeat([]byte{0xf8, 0xff, 0xff, 0xff, 0x0f, 0x01}, n)))
		// Groups and messages nest without end.
		pod(fmt.Sprint(n, " groups"), unknown("Pod", bytes.Repeat([]byte{0x1b}, n)))
		deep := []byte{}
		for range min(n, 3_000) {
			deep = field(2, deep)
		}
		pod(fmt.Sprint(n, " messages in messages"), unknown("Pod", deep))
	}
	for _, length := range [][]byte{{0xff, 0xff, 0xff, 0xff, 0x0f}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, {0x80, 0x80, 0x80, 0x80, 0x08}} {
		pod(fmt.Sprintf("length %x of nothing", length), unknown("Pod", slices.Concat([]byte{0x12}, length)))
		pod(fmt.Sprintf("length %x of the object", length), slices.Concat([]byte("k8s\x00\x12"), length))
	}
	pod("text that is no UTF-8", spec(field(10, bytes.Repeat([]byte{0xff}, 10_000))))
	pod("kind that is long", unknown(strings.Repeat("K", longText), nil))
	pod("another kind", unknown("LimitRange", metadata))
	pod("encoding of the content", slices.Concat(unknown("Pod", metadata), field(3, []byte("gzip")), field(4, []byte("application/json"))))
	pod("numbers in place of text", spec([]byte{0x10, 0x01, 0x15, 1, 2, 3, 4, 0x11, 1, 2, 3, 4, 5, 6, 7, 8}))
	return class("protobuf", requests)
}

// protoPod is a Pod with a container that has this limit of memory, and one
// whose limit is 1.
func protoPod(memory string) []byte {
	container := func(name, memory string) []byte {
		return field(2, message(field(1, []byte(name)), field(2, []byte("i:1")), field(8, field(1, entry("memory", memory)))))
	}
	return unknown("Pod", message(field(1, field(1, []byte("p"))), field(2, message(container("c", memory), container("d", "1")))))
}

// entry is one of a ResourceList.
func entry(name, quantity string) []byte {
	return message(field(1, []byte(name)), field(2, field(1, []byte(quantity))))
}

// unknown wraps an object, as runtime.Unknown.
func unknown(kind string, object []byte) []byte {
	return message([]byte("k8s\x00"), field(1, message(field(1, []byte(groupVersion)), field(2, []byte(kind)))), field(2, object))
}

func message(fields ...[]byte) []byte { return slices.Concat(fields...) }

// field is a length-delimited field of a message.
func field(number int, value []byte) []byte {
	const withLength = 2
	b := binary.AppendUvarint(nil, uint64(number)<<3|withLength)
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}
