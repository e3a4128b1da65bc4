// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// parameters has paths and queries that name nothing, or too much.
func parameters(p paths) (requests []Request) {
	alike := true
	add := func(method, path string) {
		if method != http.MethodGet && strings.Contains(path, "?") {
			path += "&dryRun=All"
		} else if method != http.MethodGet {
			path += dryRun
		}
		requests = append(requests, Request{Name: "path or query", Method: method, Path: path, Header: typed(asJSON), Watch: strings.Contains(path, "watch"), Variant: alike})
	}
	long := strings.Repeat("a", longText)
	raw := strings.Repeat("\xff", longText) // is not escaped in the query, and long in the log
	texts := []string{"", "abc", "-1", "0", "1", "9223372036854775807", "9223372036854775808", "99999999999999999999999", "1e9", "true", "\x00", "\xff", "é", "../..", "{}", long}
	for _, name := range []string{"resourceVersion", "resourceVersionMatch", "limit", "continue", "labelSelector", "fieldSelector", "timeoutSeconds", "timeout", "watch", "allowWatchBookmarks", "sendInitialEvents", "pretty", "dryRun", "fieldManager", "fieldValidation", "force", "gracePeriodSeconds", "propagationPolicy", "orphanDependents", "ignoreStoreReadErrorWithClusterBreakingPotential", "shardSelector"} {
		for _, text := range texts {
			query := "?" + name + "=" + url.QueryEscape(text)
			add(http.MethodGet, p.pods()+query)
			add(http.MethodGet, p.pod()+query)
			if name != "timeoutSeconds" && name != "timeout" {
				add(http.MethodGet, api+"/namespaces?watch=true&timeoutSeconds=1&"+query[1:])
			}
			add(http.MethodDelete, p.pods()+"/not-there"+query)
			requests = append(requests, Request{Name: "query of a POST", Method: http.MethodPost, Path: p.pods() + query + "&dryRun=All", Header: typed(asJSON), Body: ordinary(p, 1).Body, Variant: true})
			requests = append(requests, Request{Name: "query of an apply", Method: http.MethodPatch, Path: p.pod() + query + "&dryRun=All", Header: typed(asApply), Body: asBytes(object("Pod", "there", nil)), Variant: true})
		}
		add(http.MethodGet, p.pods()+"?"+name+"="+raw)
	}
	// The library names each invalid character, and each invalid value.
	invalidManager := "fieldManager=" + strings.Repeat("%01", 20_000)
	invalidValues := "labelSelector=" + url.QueryEscape("k in ("+numbered(20_000, "@%d", ",")+")")
	add(http.MethodPost, p.pods()+"?"+invalidManager)
	alike = false
	for _, query := range []string{
		"?" + strings.Repeat("a=b&", 50_000), "?" + numbered(20_000, "k%d=v", "&"), "?" + strings.Repeat("dryRun=All&", 10_000), "?" + strings.Repeat("&", longText), "?" + strings.Repeat(";", 1000), "?%", "?%zz=%", "?=%00",
		"?labelSelector=" + url.QueryEscape(numbered(1_000, "!k%d", ",")), "?labelSelector=" + url.QueryEscape(numbered(10_000, "k%d=v", ",")), "?labelSelector=" + url.QueryEscape("k in ("+numbered(20_000, "v%d", ",")+")"), "?" + invalidValues, "?labelSelector=" + url.QueryEscape(strings.Repeat("(", 10_000)), "?labelSelector=" + url.QueryEscape(strings.Repeat("!", 10_000)),
		"?fieldSelector=" + url.QueryEscape(numbered(1_000, "metadata.name!=v%d", ",")), "?fieldSelector=" + url.QueryEscape(numbered(10_000, "metadata.name=v%d", ",")), "?fieldSelector=" + url.QueryEscape(strings.Repeat(`a\`, 10_000)), "?fieldSelector=" + url.QueryEscape("spec.host=n1"), "?fieldSelector=%3D%3D%3D",
		"?limit=1&continue=" + strings.Repeat("QUFB", 10_000), "?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vLi4vLi4ifQ", "?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJ4XHUwMDAwIn0",
		"?watch=true&resourceVersion=abc", "?watch=true&resourceVersion=9999999999999", "?watch=1&sendInitialEvents=true", "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "?watch=1&limit=1&continue=x",
		"?limit=" + raw, "?limit=x&a=" + raw, "?timeout=" + raw, "?watch=1&timeoutSeconds=" + raw, "?fieldSelector=" + raw, "?a=" + raw,
		"?resourceVersion=0&resourceVersionMatch=Exact", "?resourceVersion=9223372036854775807&resourceVersionMatch=NotOlderThan", "?resourceVersion=1&resourceVersionMatch=Exact",
	} {
		add(http.MethodGet, p.pods()+query)
		add(http.MethodGet, p.pod()+query)
		add(http.MethodGet, api+"/namespaces"+query)
		add(http.MethodDelete, p.pods()+query)
	}
	alike = true
	for _, path := range []string{
		"/%2e%2e", "/%2e", "/a%25b", "/a%2fb", "/%00", "/%ff", "/..", "/.", "//", "/%20", "/A", "/-", "/" + strings.Repeat("a", 64), "/" + strings.Repeat("a", 254), "/" + long, strings.Repeat("/a", 10_000), "/é", "/%F0%9F%92%A9",
		"/a%0d%0aX: y", "/%2e%2e%2f%2e%2e%2fregistry", "/a?b?c", "/a;b", "/*", "/a:b", "/a%", "/%zz", "/a\\b", "/'\"<>",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			add(method, api+"/namespaces"+path)
			add(method, api+"/namespaces"+path+"/pods")
			add(method, api+"/namespaces"+path+"/pods/p/status")
			add(method, p.pods()+path)
		}
		add(http.MethodGet, path)
		add(http.MethodGet, "/apis"+path)
		add(http.MethodGet, "/openapi/v3"+path)
		add(http.MethodGet, api+"/watch/namespaces"+path)
		requests = append(requests, Request{Name: "create at a path", Method: http.MethodPost, Path: api + "/namespaces" + path + "/pods" + dryRun, Header: typed(asJSON), Body: ordinary(p, 1).Body, Variant: true})
	}
	for _, method := range []string{"", "get", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "QUERY", "X", strings.Repeat("M", 1000)} {
		add(method, p.pods())
		add(method, p.pod()+"/status")
	}
	for i, r := range requests {
		// A limit of time that the client sets is its own doing, and so is to wait
		// for a revision that is not there yet.
		if strings.Contains(r.Path, "timeout=") || strings.Contains(r.Path, "esourceVersion=9") {
			requests[i].Allowed = []int{http.StatusGatewayTimeout}
		}
		path, query, _ := strings.Cut(r.Path, "?")
		_, err := url.PathUnescape(path)
		// Go's client cannot send the path // with HTTP/2.
		requests[i].Malformed = err != nil || path == "//"
		_, err = url.ParseQuery(query)
		requests[i].Direct = err != nil || strings.Contains(query, invalidValues) || strings.Contains(query, invalidManager) || strings.Contains(query, raw)
		if requests[i].Name == "path or query" {
			requests[i].Name = fmt.Sprintf("%s %q", r.Method, r.Path[:min(len(r.Path), 160)])
		}
	}
	return class("parameters", requests)
}

// headers has headers that are long, many, or claim what is not so.
func headers(p paths) (requests []Request) {
	alike := true
	add := func(name string, values ...string) {
		for _, r := range []Request{ordinary(p, 1), {Method: http.MethodGet, Path: p.pods()}, {Method: http.MethodGet, Path: "/apis"}, {Method: http.MethodGet, Path: "/openapi/v3/apis/" + groupVersion}} {
			r.Name = fmt.Sprintf("%s: %.60q", name, values)
			r.Header = r.Header.Clone()
			if r.Header == nil {
				r.Header = http.Header{}
			}
			r.Header[name], r.Variant = values, alike
			requests = append(requests, r)
		}
	}
	long := strings.Repeat("a", longText)
	for _, name := range []string{"Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Audit-Id", "Content-Type", "Content-Encoding", "Cookie", "Forwarded", "If-Match", "If-None-Match", "Impersonate-User", "Impersonate-Extra-A", "Origin", "Range", "Traceparent", "Tracestate", "User-Agent", "X-Forwarded-For", "X-Remote-User", "X-Remote-Extra-A", "X-Unknown"} {
		for _, value := range []string{"", ",", "*/*", "\xff", "é", "Bearer ", "Basic !!!", "00-0-0-0", "gzip;q=9", long} {
			add(name, value)
		}
	}
	alike = false
	add("Accept", strings.TrimSuffix(strings.Repeat("application/json,", 10_000), ","))
	add("Accept", numbered(5_000, "a/b%d;q=0.%[1]d", ","))
	add("Accept", "application/json;"+numbered(10_000, "k%d=v", ";"))
	add("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	add("Accept", "application/json;as=Nonsense;v=v9;g=x", "application/json;as=PartialObjectMetadata")
	add("Accept-Encoding", strings.Repeat("gzip,", 10_000))
	add("Content-Type", "application/json;"+numbered(10_000, "k%d=v", ";"))
	add("X-Unknown", strings.Split(strings.Repeat("a,", 5_000), ",")...)
	add("Traceparent", "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-ff")
	add("Impersonate-Group", "system:masters")
	add("X-Remote-Group", "system:masters")
	add("Expect", "100-continue")
	add("Expect", "nonsense")
	return class("headers", requests)
}

// hangups are the requests that cost most, of a client that hangs up once it has
// sent them.
func hangups(p paths) []Request {
	requests := append(products(p),
		post("quantities", p.pods()+dryRun, object("Pod", "p", obj{"spec": obj{"containers": list{withLimit(0, "1e10000000"), withLimit(1, "1")}}})),
		Request{Name: "list", Method: http.MethodGet, Path: p.pods()},
		Request{Name: "watch", Method: http.MethodGet, Path: p.pods() + "?watch=true"},
	)
	for _, n := range []int{100, 1_000, 20_000} {
		requests = append(requests, Request{
			Name: fmt.Sprint("patch ", n, " containers"), Method: http.MethodPatch, Path: p.pod() + dryRun,
			Header: typed(asStrategic), Body: asBytes(obj{"spec": obj{"containers": many(n, container)}}),
		})
	}
	for i, request := range requests {
		// Those that prepare for the others must not be interrupted.
		requests[i].Hangup = request.Method == http.MethodGet || strings.Contains(request.Path, dryRun)
		requests[i].Variant = requests[i].Hangup
	}
	return class("hangups", requests)
}
