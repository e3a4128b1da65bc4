// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

const (
	apiServiceName = "v1.tenancy.borough.io"
	serverName     = "borough-apiserver"
	certSecret     = "borough-apiserver-tls"
	certFile       = "/etc/borough/tls/tls.crt"
)

// deployment is Borough with the objects that it would have in a cluster with
// nodes.
type deployment struct {
	cluster    *testcluster.Cluster
	borough    *testcluster.Borough
	etcd       *testcluster.Etcd // Borough's
	kubectl    *harness.Kubectl
	kubeconfig string
}

// deploy deploys Borough with additional flags.
func deploy(t *testing.T, cluster *testcluster.Cluster, flags ...string) *deployment {
	t.Helper()
	d := &deployment{cluster: cluster}
	d.etcd = testcluster.StartEtcdForTest(t, filepath.Join(d.cluster.Dir, "borough-etcd"), testcluster.EtcdOptions{Unsafe: true})
	d.borough = d.cluster.NewBorough(t, testcluster.BoroughOptions{Etcd: d.etcd, ServerFlags: flags})
	d.kubectl = d.cluster.Kubectl(t)
	var err error
	if d.kubeconfig, err = d.cluster.WriteKubeconfig("doctor", d.cluster.AdminConfig()); err != nil {
		t.Fatal(err)
	}
	d.change(t, func(spec *corev1.PodSpec) { spec.Containers[0].Args = append(spec.Containers[0].Args, flags...) })
	d.mountCert(t)
	d.createPod(t, serverName+"-0", "")
	// No controller creates Pods.
	d.kubectl.Run(t, "scale", "deployment", serverName, "--replicas=1", "--namespace="+testcluster.SystemNamespace)
	d.kubectl.Run(t, "scale", "deployment", "borough-controller-manager", "--replicas=0", "--namespace="+testcluster.SystemNamespace)
	return d
}

// mountCert makes the Deployment mount its certificate from a Secret, which has
// the certificate that the server presents.
func (d *deployment) mountCert(t *testing.T) {
	t.Helper()
	conn, err := tls.Dial("tcp", d.address(), &tls.Config{InsecureSkipVerify: true}) // the caller verifies it
	if err != nil {
		t.Fatalf("read the serving certificate: %v", err)
	}
	defer conn.Close()
	served := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: conn.ConnectionState().PeerCertificates[0].Raw})
	client := d.cluster.Client(t)
	_, err = client.CoreV1().Secrets(testcluster.SystemNamespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: certSecret},
		Data:       map[string][]byte{corev1.TLSCertKey: served},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create the Secret of the serving certificate: %v", err)
	}
	d.change(t, func(spec *corev1.PodSpec) {
		container := &spec.Containers[0]
		container.Args = append(container.Args, "--tls-cert-file="+certFile)
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "tls", MountPath: filepath.Dir(certFile)})
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "tls", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: certSecret},
		}})
	})
}

// change changes the Pod template of the Deployment.
func (d *deployment) change(t *testing.T, change func(*corev1.PodSpec)) {
	t.Helper()
	deployments := d.cluster.Client(t).AppsV1().Deployments(testcluster.SystemNamespace)
	deployment, err := deployments.Get(t.Context(), serverName, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the Deployment: %v", err)
	}
	change(&deployment.Spec.Template.Spec)
	if _, err := deployments.Update(t.Context(), deployment, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("change the Deployment: %v", err)
	}
}

// createPod creates a Pod of the server, which is Ready if it is on a node. The network
// connects its address to the server's process.
func (d *deployment) createPod(t *testing.T, name, node string) {
	t.Helper()
	ctx, client := t.Context(), d.cluster.Client(t)
	deployment, err := client.AppsV1().Deployments(testcluster.SystemNamespace).Get(ctx, serverName, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the Deployment: %v", err)
	}
	pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
	pod.Name, pod.Spec.NodeName = name, node
	pod.Spec.Containers[0].Ports[0].ContainerPort = int32(d.borough.Servers[0].Port)
	// No controller runs that would calculate the quota for the priority class.
	pod.Spec.PriorityClassName = ""
	pods := client.CoreV1().Pods(testcluster.SystemNamespace)
	if pod, err = pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create the Pod: %v", err)
	}
	pod.Status.Phase = corev1.PodRunning
	if node != "" {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	pod.Status.PodIP = "192.0.2.1"
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("set the Pod's status to running: %v", err)
	}
}

func (d *deployment) address() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(d.borough.Servers[0].Port))
}

// keep restores the current state of an object when the test ends.
func (d *deployment) keep(t *testing.T, args ...string) {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(d.kubectl.Run(t, append([]string{"get", "-o", "json"}, args...)...)), &object); err != nil {
		t.Fatal(err)
	}
	meta := object["metadata"].(map[string]any)
	delete(meta, "resourceVersion")
	delete(meta, "uid")
	delete(object, "status")
	manifest, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if _, _, err := d.kubectl.Try(ctx, string(manifest), "replace", "-f", "-"); err == nil {
			return
		}
		if _, stderr, err := d.kubectl.Try(ctx, string(manifest), "create", "-f", "-"); err != nil {
			t.Errorf("restore %v: %v\n%s", args, err, stderr)
		}
	})
}

// remove deletes an object until the test ends.
func (d *deployment) remove(t *testing.T, args ...string) {
	t.Helper()
	d.keep(t, args...)
	d.kubectl.Run(t, append([]string{"delete"}, args...)...)
}

// apply applies a manifest until the test ends.
func (d *deployment) apply(t *testing.T, manifest string) {
	t.Helper()
	d.kubectl.RunWith(t, manifest, "apply", "-f", "-")
	t.Cleanup(func() {
		if _, stderr, err := d.kubectl.Try(context.WithoutCancel(t.Context()), manifest, "delete", "-f", "-"); err != nil {
			t.Errorf("delete the manifest: %v\n%s", err, stderr)
		}
	})
}

// trust replaces the caBundle of the APIService until the test ends.
func (d *deployment) trust(t *testing.T, caBundle []byte) {
	t.Helper()
	d.patchAPIService(t, map[string]any{"caBundle": caBundle})
}

func (d *deployment) patchAPIService(t *testing.T, spec map[string]any) {
	t.Helper()
	d.keep(t, "apiservice", apiServiceName)
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	d.kubectl.Run(t, "patch", "apiservice", apiServiceName, "--type=merge", "--patch="+string(patch))
}

// serviceName is the name of the Service in DNS.
const serviceName = serverName + "." + testcluster.SystemNamespace + ".svc"

// replaceServer runs the server with additional flags until the test ends. Its
// certificate, for the name, is from a new CA, which is returned but not in the
// APIService.
func (d *deployment) replaceServer(t *testing.T, name string, flags ...string) (caPEM []byte) {
	t.Helper()
	ca := testcluster.NewCAForTest(t, "replacement")
	cert, key, err := ca.Issue(pkix.Name{CommonName: serverName}, name, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	config, err := d.cluster.ServiceAccountConfig(t.Context(), testcluster.SystemNamespace, serverName)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := d.cluster.WriteKubeconfig("replacement", config)
	if err != nil {
		t.Fatal(err)
	}
	path, err := harness.Binary("borough-apiserver")
	if err != nil {
		t.Fatal(err)
	}

	original := d.borough.Servers[0]
	if err := original.Process.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := original.Start(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	args := append(d.etcd.ClientFlags(),
		"--kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(original.Port),
		"--tls-cert-file="+file(t, "tls.crt", cert),
		"--tls-private-key-file="+file(t, "tls.key", key))
	process, err := harness.StartProcess(path, append(args, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := rest.HTTPClientFor(&rest.Config{Timeout: 5 * time.Second, TLSClientConfig: rest.TLSClientConfig{CAData: ca.CertPEM}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	poll.Eventually(t, func() string {
		response, err := client.Get("https://" + d.address() + "/readyz")
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		if response.StatusCode != 200 {
			return response.Status
		}
		return ""
	})
	return ca.CertPEM
}

// file writes a file that exists until the test ends.
func file(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
