// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/metrics"
)

// limitLabels makes metrics of requests name only what the server serves; the rest is
// "unexpected". The library takes these labels from the path, also of requests that it refuses
// before it authenticates them, and each value takes memory until the process ends.
//
// The first server sets the limits of the process. The library reads them without a lock, so
// they must not change while a server serves.
func limitLabels(server *genericapiserver.GenericAPIServer, groups []apiGroup) {
	setLabels.Do(func() { metrics.SetLabelAllowList(allowedLabels(server, groups)) })
}

var setLabels sync.Once

// allowedLabels returns the allowed values, separated by commas, by "metric,label".
func allowedLabels(server *genericapiserver.GenericAPIServer, groups []apiGroup) map[string]string {
	// In place of a subresource, the library has the path of a request that is not for a
	// resource; those of health checks are served later.
	values := map[string][]string{
		"group":       {""},
		"version":     {"", version},
		"resource":    {"", "flagz", "statusz"},
		"subresource": append(server.Handler.ListedPaths(), "", "api", "apis", "/healthz", "/livez", "/readyz"),
	}
	for _, group := range groups {
		values["group"] = append(values["group"], group.name)
		for path := range group.resources {
			resource, subresource, _ := strings.Cut(path, "/")
			values["resource"] = append(values["resource"], resource)
			values["subresource"] = append(values["subresource"], subresource)
		}
	}
	allowed := map[string]string{}
	for _, metric := range []string{"apiserver_request_total", "apiserver_request_terminations_total", "apiserver_request_aborts_total"} {
		for label, list := range values {
			allowed[metric+","+label] = strings.Join(list, ",")
		}
	}
	return allowed
}
