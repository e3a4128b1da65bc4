// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package features_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/borough-io/borough/pkg/corepod/features"
)

// gatedPods use the fields of one disabled feature each.
var gatedPods = map[string]struct{ uses, without string }{
	"scheduling group":    {`spec: {schedulingGroup: {podGroupName: g}}`, `{}`},
	"eviction responders": {`spec: {evictionResponders: [{name: r, priority: 1}]}`, `{}`},
	"volume health":       {`status: {volumeHealth: [{name: v}]}`, `{}`},
	"claims on the node":  {`status: {nodeAllocatableResourceClaimStatuses: [{resourceClaimName: c}]}`, `{}`},
	"image digests": {
		`status: {containerStatuses: [{name: c, volumeMounts: [{name: v, volumeStatus: {image: {imageRef: r}}}]}]}`,
		`status: {containerStatuses: [{name: c, volumeMounts: [{name: v}]}]}`,
	},
	"stop signal alone": {
		`spec: {containers: [{name: c, lifecycle: {stopSignal: SIGUSR1}}]}`,
		`spec: {containers: [{name: c}]}`,
	},
	"stop signal": {
		`spec: {initContainers: [{name: c, lifecycle: {stopSignal: SIGUSR1, preStop: {sleep: {seconds: 1}}}}]}`,
		`spec: {initContainers: [{name: c, lifecycle: {preStop: {sleep: {seconds: 1}}}}]}`,
	},
	"mount options": {
		`spec: {containers: [{name: c, volumeMounts: [{name: v, bindMountOptions: [noexec]}]}]}`,
		`spec: {containers: [{name: c, volumeMounts: [{name: v}]}]}`,
	},
	"HTTP/2": {
		`spec: {containers: [{name: c, livenessProbe: {httpGet: {port: 1, protocol: HTTP2}}, lifecycle: {preStop: {httpGet: {port: 1, protocol: HTTP2}}}}]}`,
		`spec: {containers: [{name: c, livenessProbe: {httpGet: {port: 1}}, lifecycle: {preStop: {httpGet: {port: 1}}}}]}`,
	},
	"TLS of gRPC": {
		`spec: {containers: [{name: c, startupProbe: {grpc: {port: 1, mode: TLS}}}]}`,
		`spec: {containers: [{name: c, startupProbe: {grpc: {port: 1}}}]}`,
	},
	"mode of an empty directory": {
		`spec: {volumes: [{name: v, emptyDir: {mode: 511}}]}`,
		`spec: {volumes: [{name: v, emptyDir: {}}]}`,
	},
	"owners of files": {
		`spec: {volumes: [{name: s, secret: {defaultUser: 1, items: [{key: k, user: 1}]}}, {name: c, configMap: {defaultUser: 1, items: [{key: k, user: 1}]}}, {name: d, downwardAPI: {defaultUser: 1, items: [{path: p, user: 1}]}},
		  {name: p, projected: {defaultUser: 1, sources: [{secret: {items: [{key: k, user: 1}]}}, {configMap: {items: [{key: k, user: 1}]}}, {downwardAPI: {items: [{path: p, user: 1}]}}, {serviceAccountToken: {path: p, user: 1}}]}}]}`,
		`spec: {volumes: [{name: s, secret: {items: [{key: k}]}}, {name: c, configMap: {items: [{key: k}]}}, {name: d, downwardAPI: {items: [{path: p}]}},
		  {name: p, projected: {sources: [{secret: {items: [{key: k}]}}, {configMap: {items: [{key: k}]}}, {downwardAPI: {items: [{path: p}]}}, {serviceAccountToken: {path: p}}]}}]}`,
	},
}

func TestDropDisabled(t *testing.T) {
	for name, test := range gatedPods {
		t.Run(name, func(t *testing.T) {
			uses, without := readPod(t, test.uses), readPod(t, test.without)

			dropped := uses.DeepCopy()
			features.DropDisabled(dropped, nil)
			if diff := cmp.Diff(without, dropped); diff != "" {
				t.Errorf("a new Pod (-want +got):\n%s", diff)
			}
			dropped = uses.DeepCopy()
			features.DropDisabled(dropped, without)
			if diff := cmp.Diff(without, dropped); diff != "" {
				t.Errorf("an update of a Pod that does not use them (-want +got):\n%s", diff)
			}
			kept := uses.DeepCopy()
			features.DropDisabled(kept, uses)
			if diff := cmp.Diff(uses, kept); diff != "" {
				t.Errorf("an update of a Pod that uses them (-want +got):\n%s", diff)
			}
		})
	}
}

func readPod(t *testing.T, manifest string) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(manifest), &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}
