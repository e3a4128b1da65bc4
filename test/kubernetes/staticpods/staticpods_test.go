// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package staticpods

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/borough-io/borough/test/harness"
)

const (
	node  = "node-1"
	token = "secret-of-the-kubelet"
)

// server is a standalone server with two Namespaces, and a user who may list all Pods.
type server struct {
	client kubernetes.Interface
	url    string // the Pods of the node
}

func newServer(t *testing.T) *server {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte(token+",kubelet,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := harness.New(t)
	if err := b.StartServer(t.Context(), "--token-auth-file="+tokens); err != nil {
		t.Fatal(err)
	}
	config := b.Config(t, "admin")
	// The kubelet trusts the CAs of the system alone.
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, config.CAData, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", ca)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"team-a", "team-b"} {
		_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "kubelet"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}},
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "kubelet"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kubelet"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "kubelet"}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return &server{client: client, url: config.Host + "/api/v1/pods?fieldSelector=spec.nodeName=" + node}
}

// create creates a Pod that is assigned to the node.
func (s *server) create(t *testing.T, namespace, name string, modify ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "example.com/image:1"}}},
	}
	for _, f := range modify {
		f(pod)
	}
	created, err := s.client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func (s *server) delete(t *testing.T, pod *corev1.Pod, gracePeriod int64) {
	t.Helper()
	err := s.client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &gracePeriod})
	if err != nil {
		t.Fatal(err)
	}
}

// wantSame checks that the kubelet's Pod is that of the API.
func wantSame(t *testing.T, got, pod *corev1.Pod) {
	t.Helper()
	if got.Name != pod.Name+"-"+node || got.Namespace != pod.Namespace || got.UID != pod.UID {
		t.Errorf("got %s/%s, UID %s, of %s/%s, UID %s", got.Namespace, got.Name, got.UID, pod.Namespace, pod.Name, pod.UID)
	}
	if diff := cmp.Diff(pod.Spec, got.Spec); diff != "" {
		t.Errorf("%s: spec (-API +kubelet):\n%s", pod.Name, diff)
	}
	if diff := cmp.Diff(pod.Labels, got.Labels); diff != "" {
		t.Errorf("%s: labels (-API +kubelet):\n%s", pod.Name, diff)
	}
	for key, want := range map[string]string{"kubernetes.io/config.source": "http", "kubernetes.io/config.hash": string(pod.UID)} {
		if got.Annotations[key] != want {
			t.Errorf("%s: annotation %s is %q, want %q", pod.Name, key, got.Annotations[key], want)
		}
	}
	for key, value := range pod.Annotations {
		if got.Annotations[key] != value {
			t.Errorf("%s: annotation %s is %q, want %q", pod.Name, key, got.Annotations[key], value)
		}
	}
}

// TestKubelet has the kubelet's code read the Pods of a node while they are created, changed
// and deleted.
func TestKubelet(t *testing.T) {
	s := newServer(t)
	k := startKubelet(t, s.url, token, node)
	k.next(t, "ADD") // no Pods, so that the kubelet is ready

	plain := s.create(t, "team-a", "web")
	wantSame(t, k.next(t, "ADD", "team-a/web-node-1")[0], plain)
	// The same name in another Namespace, and Pods that are not of the node.
	s.create(t, "team-a", "elsewhere", func(pod *corev1.Pod) { pod.Spec.NodeName = "node-2" })
	s.create(t, "team-a", "unassigned", func(pod *corev1.Pod) { pod.Spec.NodeName = "" })
	full := s.create(t, "team-b", "web", withManyFields(t))
	wantSame(t, k.next(t, "ADD", "team-b/web-node-1")[0], full)

	// A status is not for the kubelet, which runs also a Pod that has ended.
	ended := full.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	if _, err := s.client.CoreV1().Pods("team-b").UpdateStatus(t.Context(), ended, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	// A change keeps the UID.
	changed, err := s.client.CoreV1().Pods("team-a").Patch(t.Context(), "web", types.StrategicMergePatchType,
		[]byte(`{"metadata":{"labels":{"changed":"yes"}},"spec":{"containers":[{"name":"c","image":"example.com/image:2"}]}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, k.next(t, "UPDATE", "team-a/web-node-1")[0], changed)
	if changed.UID != plain.UID {
		t.Errorf("UID %s after the change, %s before", changed.UID, plain.UID)
	}

	// A graceful delete, which no kubelet without an API confirms.
	s.delete(t, plain, 3600)
	if pod := k.next(t, "DELETE", "team-a/web-node-1")[0]; pod.DeletionTimestamp == nil || *pod.DeletionGracePeriodSeconds != 3600 {
		t.Errorf("got deletionTimestamp %v, deletionGracePeriodSeconds %v", pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds)
	}
	// One that starts later adds the Pod, and knows that it is to end.
	later := startKubelet(t, s.url, token, node)
	added := later.next(t, "ADD", "team-a/web-node-1", "team-b/web-node-1")
	if added[0].DeletionTimestamp == nil {
		t.Error("a Pod that is Terminating has no deletionTimestamp")
	}
	if phase := added[1].Status.Phase; phase != corev1.PodPending {
		t.Errorf("the Pod that has ended has the phase %s", phase)
	}
	s.delete(t, plain, 0)
	k.removed(t, "team-a/web-node-1")
	later.removed(t, "team-a/web-node-1")

	// A Pod that the kubelet refuses holds up all changes of the node.
	for want, tc := range map[string]struct {
		name   string
		modify func(*corev1.Pod)
	}{
		"static pods may not reference serviceaccounts": {"refused", func(pod *corev1.Pod) { pod.Spec.ServiceAccountName = "default" }},
		"static pods may not reference secrets":         {"refused", withSecret},
		"invalid pod: [metadata.name: Invalid value":    {strings.Repeat("a", 250), func(*corev1.Pod) {}},
	} {
		refused := s.create(t, "team-a", tc.name, tc.modify)
		k.logs(t, want)
		next := s.create(t, "team-a", "next")
		startKubelet(t, s.url, token, node).logs(t, want)
		if got := k.updates(t); len(got) > 0 {
			t.Errorf("got %v despite the Pod that is refused", got)
		}
		if refused.Spec.ServiceAccountName != "" { // leave it out of the answer
			wantSame(t, startKubelet(t, s.url+",spec.serviceAccountName=", token, node).next(t, "ADD", "team-a/next-node-1", "team-b/web-node-1")[0], next)
		}
		s.delete(t, refused, 0)
		k.next(t, "ADD", "team-a/next-node-1")
		s.delete(t, next, 0)
		k.removed(t, "team-a/next-node-1")
	}

	startKubelet(t, s.url+",status.phase!=Succeeded,status.phase!=Failed", token, node).next(t, "ADD")
	s.delete(t, full, 0)
	k.removed(t, "team-b/web-node-1")
}

func withSecret(pod *corev1.Pod) {
	pod.Spec.Volumes = []corev1.Volume{{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "secret"}}}}
}

// TestKubeletWithoutAccess checks that a kubelet that gets no Pods because of its token or the
// certificate of the server has no update, not even an empty one.
func TestKubeletWithoutAccess(t *testing.T) {
	s := newServer(t)
	s.create(t, "team-a", "web")
	for token, want := range map[string]string{"": "403 Forbidden", "wrong": "401 Unauthorized"} {
		k := startKubelet(t, s.url, token, node)
		k.logs(t, want)
		if got := k.updates(t); len(got) > 0 {
			t.Errorf("token %q: got %v", token, got)
		}
	}
	t.Setenv("SSL_CERT_FILE", filepath.Join(t.TempDir(), "missing"))
	t.Setenv("SSL_CERT_DIR", t.TempDir())
	k := startKubelet(t, s.url, token, node)
	k.logs(t, "certificate signed by unknown authority")
	if got := k.updates(t); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

// withManyFields gives a Pod fields of many kinds.
func withManyFields(t *testing.T) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		t.Helper()
		if err := yaml.UnmarshalStrict([]byte(manyFields), pod); err != nil {
			t.Fatal(err)
		}
	}
}

const manyFields = `
metadata:
  labels: {app: web}
  annotations:
    example.com/text: |
      Some
      lines: "ü"
spec:
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 7
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  dnsConfig: {nameservers: [192.0.2.1], options: [{name: ndots, value: "2"}]}
  hostAliases: [{ip: 192.0.2.2, hostnames: [db]}]
  priority: 10
  nodeSelector: {disk: ssd}
  tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 30}]
  securityContext: {runAsUser: 1000, runAsNonRoot: true, fsGroup: 2000, seccompProfile: {type: RuntimeDefault}}
  shareProcessNamespace: true
  enableServiceLinks: false
  automountServiceAccountToken: false
  activeDeadlineSeconds: 600
  overhead: {cpu: 10m}
  volumes:
  - {name: scratch, emptyDir: {medium: Memory, sizeLimit: 64Mi}}
  - {name: host, hostPath: {path: /var/log, type: Directory}}
  - {name: info, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
  - {name: nfs, nfs: {server: nfs.example.com, path: /export}}
  initContainers:
  - {name: init, image: example.com/init:1, command: ["true"]}
  - {name: sidecar, image: example.com/sidecar:1, restartPolicy: Always}
  containers:
  - name: c
    image: example.com/image:1
    command: [serve]
    args: ["--port=8080"]
    workingDir: /srv
    env:
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
    ports: [{name: http, containerPort: 8080, protocol: TCP}]
    resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: "1", memory: 128Mi, example.com/device: "1"}}
    volumeMounts: [{name: scratch, mountPath: /scratch}, {name: host, mountPath: /host, readOnly: true}]
    livenessProbe: {httpGet: {path: /livez, port: http}, periodSeconds: 7}
    readinessProbe: {exec: {command: ["true"]}}
    startupProbe: {tcpSocket: {port: 8080}, failureThreshold: 30}
    lifecycle: {preStop: {sleep: {seconds: 1}}}
    securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    terminationMessagePolicy: FallbackToLogsOnError
    imagePullPolicy: Always
    stdin: true
  - {name: other, image: "example.com/other@sha256:0000000000000000000000000000000000000000000000000000000000000000"}
`
