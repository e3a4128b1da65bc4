// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// The objects of the two sides differ only in apiVersion.

func (s *side) namespaceBody(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"Namespace","metadata":{"name":%q,"labels":{"team":"bench"}}}`, s.apiVersion, name)
}

func (s *side) limitRangeBody(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"LimitRange","metadata":{"name":%q},"spec":{"limits":[{"type":"Container",`+
		`"default":{"cpu":"500m","memory":"256Mi"},"defaultRequest":{"cpu":"100m","memory":"64Mi"},"max":{"cpu":"2","memory":"1Gi"}}]}}`, s.apiVersion, name)
}

func (s *side) quotaBody(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"ResourceQuota","metadata":{"name":%q},"spec":{"hard":{`+
		`"pods":"100000","requests.cpu":"100000","requests.memory":"100000Gi","limits.cpu":"100000","limits.memory":"100000Gi"}}}`, s.apiVersion, name)
}

// podBody specifies no resources: the LimitRange sets the defaults. It specifies what else
// the admission plugins of Kubernetes would add, so that both sides store the same.
func (s *side) podBody(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"Pod","metadata":{"name":%q,"labels":{"app":"bench"}},"spec":{"containers":[`+
		`{"name":"app","image":"registry.example/app:1.0","ports":[{"containerPort":8080}],"env":[{"name":"MODE","value":"bench"}]},`+
		`{"name":"sidecar","image":"registry.example/sidecar:1.0"}],"priority":0,"preemptionPolicy":"PreemptLowerPriority","tolerations":[`+
		`{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},`+
		`{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}]}}`, s.apiVersion, name)
}
