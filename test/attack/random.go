// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
)

// Random makes requests by changing valid ones.
type Random struct {
	*rand.Rand
	paths paths
	bases []base
}

// NewRandom returns the source of the random requests of a seed. They are about
// what Prepare makes.
func NewRandom(namespace string, seed uint64) *Random {
	p := paths{namespace}
	return &Random{rand.New(rand.NewPCG(seed, 0)), p, p.bases()}
}

// Request returns the next request, which is the i-th.
func (r *Random) Request(i int) Request {
	b := r.bases[r.IntN(len(r.bases))]
	body := b.body
	for range 1 + r.IntN(3) {
		places := slots(body)
		if len(places) == 0 {
			break
		}
		at := places[r.IntN(len(places))]
		body = at.replace(body, r.hostile(at))
	}
	request := Request{Class: "random", Name: fmt.Sprint(b.name, " ", i), Method: b.method, Path: b.path}
	switch r.IntN(8) {
	case 0:
		request.Header, request.Body = typed(asYAML), asBytes(body)
	case 1:
		request.Header, request.Body = typed(asCBOR), []byte(asCBORBytes(body))
	case 2, 3, 4:
		r.patch(&request, body)
	default:
		request.Header, request.Body = typed(asJSON), asBytes(body)
	}
	if r.IntN(3) == 0 {
		request.Body = r.damage(request.Body)
	}
	return request
}

// patch makes a patch of the request.
func (r *Random) patch(request *Request, body any) {
	to := []string{r.paths.pod(), r.paths.pod() + "/status", r.paths.pod() + "/resize", r.paths.pod() + "/ephemeralcontainers", r.paths.limitRange(), r.paths.quota(), r.paths.in(), r.paths.in() + "/status"}
	request.Method, request.Path = http.MethodPatch, to[r.IntN(len(to))]+dryRun
	switch r.IntN(5) {
	case 0:
		operations := list{}
		for range 1 + r.IntN(8) {
			places := slots(body)
			if len(places) == 0 {
				break
			}
			at, from := places[r.IntN(len(places))], places[r.IntN(len(places))]
			names := []string{"add", "remove", "replace", "test", "copy", "move"}
			operations = append(operations, obj{"op": names[r.IntN(len(names))], "path": pointer(at), "from": pointer(from), "value": at.value})
		}
		request.Header, request.Body = typed(asJSONPatch), asBytes(operations)
	case 1:
		request.Header, request.Body = typed(asMerge), asBytes(body)
	case 2, 3:
		request.Header, request.Body = typed(asStrategic), asBytes(body)
	default:
		request.Path += "&fieldManager=attack&force=true"
		request.Header, request.Body = typed(asApply), asBytes(body)
	}
}

// pointer is the JSON pointer to a place.
func pointer(s slot) string {
	var b strings.Builder
	for _, step := range s.path {
		fmt.Fprintf(&b, "/%s", strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(step)))
	}
	return b.String()
}

// hostile returns what may be put in a place.
func (r *Random) hostile(at slot) any {
	switch r.IntN(8) {
	case 0:
		return hostileQuantities[r.IntN(len(hostileQuantities))]
	case 1:
		values := list{nil, true, 0, -1, 1 << 53, -1.5, 1e300, "", "a", "A/b", "..", "\x00", "\u2028", list{}, obj{}, list{nil}, obj{"": ""}}
		return values[r.IntN(len(values))]
	case 2:
		return strings.Repeat(string(rune(1+r.IntN(0x2fff))), r.IntN(5_000))
	case 3:
		n := r.IntN(300)
		return many(n, func(int) any { return at.value })
	case 4:
		o := obj{}
		for i := range r.IntN(300) {
			o[fmt.Sprint("k", i)] = at.value
		}
		return o
	case 5:
		value := at.value
		for range r.IntN(100) {
			value = list{value}
		}
		return value
	case 6: // what is elsewhere
		places := slots(r.bases[r.IntN(len(r.bases))].body)
		return places[r.IntN(len(places))].value
	default:
		directives := list{obj{"$patch": "delete"}, obj{"$patch": "replace"}, obj{"$retainKeys": list{"a"}}, list{obj{"$patch": "delete", "name": "c0"}}, obj{"f:a": obj{}}}
		return directives[r.IntN(len(directives))]
	}
}

// damage changes bytes of a body.
func (r *Random) damage(body []byte) []byte {
	body = bytes.Clone(body)
	for range 1 + r.IntN(4) {
		if len(body) == 0 {
			return body
		}
		at := r.IntN(len(body))
		switch r.IntN(4) {
		case 0:
			body[at] = byte(r.IntN(256))
		case 1:
			body = body[:at]
		case 2:
			body = append(body[:at], body[at+r.IntN(len(body)-at):]...)
		case 3:
			piece := body[at:min(len(body), at+1+r.IntN(100))]
			body = append(body[:at:at], append(bytes.Repeat(piece, 1+r.IntN(20)), body[at:]...)...)
		}
	}
	return body
}
