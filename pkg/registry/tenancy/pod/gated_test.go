// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// gatedPods use the fields of one gated feature each.
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
	"trust bundles": {
		`spec: {volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {name: b, path: p}}]}}]}`,
		`spec: {volumes: [{name: v, projected: {sources: [{}]}}]}`,
	},
	"certificates": {
		`spec: {volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: s}}]}}]}`,
		`spec: {volumes: [{name: v, projected: {sources: [{}]}}]}`,
	},
	"owners of files": {
		`spec: {volumes: [{name: s, secret: {defaultUser: 1, items: [{key: k, user: 1}]}}, {name: c, configMap: {defaultUser: 1, items: [{key: k, user: 1}]}}, {name: d, downwardAPI: {defaultUser: 1, items: [{path: p, user: 1}]}},
		  {name: p, projected: {defaultUser: 1, sources: [{secret: {items: [{key: k, user: 1}]}}, {configMap: {items: [{key: k, user: 1}]}}, {downwardAPI: {items: [{path: p, user: 1}]}}, {serviceAccountToken: {path: p, user: 1}}]}}]}`,
		`spec: {volumes: [{name: s, secret: {items: [{key: k}]}}, {name: c, configMap: {items: [{key: k}]}}, {name: d, downwardAPI: {items: [{path: p}]}},
		  {name: p, projected: {sources: [{secret: {items: [{key: k}]}}, {configMap: {items: [{key: k}]}}, {downwardAPI: {items: [{path: p}]}}, {serviceAccountToken: {path: p}}]}}]}`,
	},
}

func TestGatedFieldsAreDropped(t *testing.T) {
	for name, test := range gatedPods {
		t.Run(name, func(t *testing.T) {
			uses, without := readPod(t, test.uses), readPod(t, test.without)

			dropped := uses.DeepCopy()
			dropGated(dropped, nil)
			if diff := cmp.Diff(without, dropped); diff != "" {
				t.Errorf("a new Pod (-want +got):\n%s", diff)
			}
			dropped = uses.DeepCopy()
			dropGated(dropped, without)
			if diff := cmp.Diff(without, dropped); diff != "" {
				t.Errorf("an update of a Pod that does not use them (-want +got):\n%s", diff)
			}
			kept := uses.DeepCopy()
			dropGated(kept, uses)
			if diff := cmp.Diff(uses, kept); diff != "" {
				t.Errorf("an update of a Pod that uses them (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryWriteDropsGatedFields writes, in every way, what the way is for.
func TestEveryWriteDropsGatedFields(t *testing.T) {
	scheme := runtime.NewScheme()
	uses := readPod(t, `{spec: {schedulingGroup: {podGroupName: g}}, status: {volumeHealth: [{name: v}]}}`)
	uses.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Lifecycle: &corev1.Lifecycle{StopSignal: new(corev1.SIGTERM)},
	}}}
	old := readPod(t, `{}`)
	for name, write := range map[string]func(*tenancy.Pod){
		"create":              func(pod *tenancy.Pod) { NewStrategy(scheme).PrepareForCreate(t.Context(), pod) },
		"update":              func(pod *tenancy.Pod) { NewStrategy(scheme).PrepareForUpdate(t.Context(), pod, old) },
		"status":              func(pod *tenancy.Pod) { NewStatusStrategy(scheme).PrepareForUpdate(t.Context(), pod, old) },
		"resize":              func(pod *tenancy.Pod) { NewResizeStrategy(scheme).PrepareForUpdate(t.Context(), pod, old) },
		"ephemeralcontainers": func(pod *tenancy.Pod) { NewEphemeralContainersStrategy(scheme).PrepareForUpdate(t.Context(), pod, old) },
	} {
		pod := uses.DeepCopy()
		write(pod)
		without := pod.DeepCopy()
		dropGated(without, nil)
		if !apiequality.Semantic.DeepEqual(pod, without) {
			t.Errorf("%s keeps %s", name, cmp.Diff(without, pod))
		}
	}
}

func readPod(t *testing.T, manifest string) *tenancy.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(manifest), &pod); err != nil {
		t.Fatal(err)
	}
	return &tenancy.Pod{Spec: pod.Spec, Status: pod.Status}
}
