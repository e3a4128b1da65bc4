// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// pod runs a Pod template as a kubelet would: as a process on this machine with
// the arguments, files and identity of its container.
//
// Arguments are passed unchanged, except for addresses of Pods, which are ports
// of 127.0.0.1, and paths in the container, which are below a directory. A
// kubeconfig replaces the token that a kubelet mounts. Controllers have longer
// times for the leader election.
type pod struct {
	site     *site
	name     string
	template *corev1.PodTemplateSpec
	dir      string
	ports    map[int32]int // ports on this machine, by containerPort
	process  *harness.Process
}

func (s *site) newPod(t *testing.T, name string, template *corev1.PodTemplateSpec) *pod {
	t.Helper()
	if n := len(template.Spec.Containers) + len(template.Spec.InitContainers); n != 1 {
		t.Fatalf("%s has %d containers, want 1", name, n)
	}
	p := &pod{site: s, name: name, template: template, dir: filepath.Join(s.cluster.Dir, "pods", name), ports: map[int32]int{}}
	for _, port := range p.container().Ports {
		p.ports[port.ContainerPort] = s.newPort(t)
	}
	t.Cleanup(func() {
		if t.Failed() && p.process != nil {
			t.Logf("%s: %s", p.name, p.process.Tail(40))
		}
		p.kill(t)
	})
	return p
}

func (p *pod) container() *corev1.Container { return &p.template.Spec.Containers[0] }

// start starts or restarts the process.
func (p *pod) start(t *testing.T) {
	t.Helper()
	p.mount(t)
	args := p.arguments(t)
	if mounted := p.template.Spec.AutomountServiceAccountToken; mounted == nil || *mounted {
		config, err := p.site.cluster.ServiceAccountConfig(t.Context(), testcluster.SystemNamespace, p.template.Spec.ServiceAccountName)
		if err != nil {
			t.Fatal(err)
		}
		kubeconfig, err := p.site.cluster.WriteKubeconfig(p.name, config)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--kubeconfig="+kubeconfig)
	}
	if p.container().Name == controllerName {
		// A controller that loses the Lease exits, and no kubelet restarts it. On a slow
		// machine, a renewal can take longer than by default.
		args = append(args, "--leader-elect-lease-duration=45s", "--leader-elect-renew-deadline=40s")
	}
	binary, err := p.binary()
	if err != nil {
		t.Fatal(err)
	}
	if p.process, err = harness.StartProcess(binary, args...); err != nil {
		t.Fatal(err)
	}
}

// binary returns the path of the container's program: its command, or the
// entrypoint of the image, which has the name of the image.
func (p *pod) binary() (string, error) {
	if command := p.container().Command; len(command) > 0 {
		return testcluster.Binary(command[0])
	}
	name, _, _ := strings.Cut(path.Base(p.container().Image), ":")
	return harness.Binary(name)
}

// mount writes the current content of the volumes to their mount paths, and
// replaces the previous content.
func (p *pod) mount(t *testing.T) {
	t.Helper()
	volumes := map[string]corev1.Volume{}
	for _, v := range p.template.Spec.Volumes {
		volumes[v.Name] = v
	}
	for _, m := range p.container().VolumeMounts {
		dir := filepath.Join(p.dir, m.MountPath)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		secret := volumes[m.Name].Secret
		if secret == nil {
			continue // a claim, which is empty at first
		}
		content := p.site.awaitSecret(t, secret)
		if err := project(dir, ".."+content.ResourceVersion, content.Data); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitSecret waits until the Secret of a volume has the items of the volume, and returns
// it.
func (s *site) awaitSecret(t *testing.T, volume *corev1.SecretVolumeSource) (secret *corev1.Secret) {
	t.Helper()
	poll.Eventually(t, func() string {
		var err error
		secret, err = s.client.CoreV1().Secrets(testcluster.SystemNamespace).Get(t.Context(), volume.SecretName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range volume.Items {
			if len(secret.Data[item.Key]) == 0 {
				return fmt.Sprintf("the Secret %s has no %s", volume.SecretName, item.Key)
			}
		}
		return ""
	})
	return secret
}

// project replaces the files in a directory atomically, as a kubelet does: they
// are symbolic links through a symbolic link that changes.
func project(dir, version string, files map[string][]byte) error {
	const data, next = "..data", "..data_tmp"
	if err := os.MkdirAll(filepath.Join(dir, version), 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, version, name), content, 0o600); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join(data, name), filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	before, _ := os.Readlink(filepath.Join(dir, data)) // missing the first time
	if before == version {
		return nil
	}
	if err := os.Symlink(version, filepath.Join(dir, next)); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, next), filepath.Join(dir, data)); err != nil || before == "" {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, before))
}

// arguments returns the container's arguments for this machine.
func (p *pod) arguments(t *testing.T) []string {
	t.Helper()
	var replace []string
	for _, env := range p.container().Env {
		if env.Name == "GOGC" || env.Name == "GOMEMLIMIT" {
			continue // no argument
		}
		if env.ValueFrom == nil || env.ValueFrom.FieldRef == nil || env.ValueFrom.FieldRef.FieldPath != "metadata.name" {
			t.Fatalf("%s: the value of %s is unknown", p.name, env.Name)
		}
		replace = append(replace, "$("+env.Name+")", p.name)
	}
	args := strings.Split(strings.NewReplacer(replace...).Replace(strings.Join(p.container().Args, "\n")), "\n")

	replace = slices.Clone(p.site.addresses)
	for _, m := range p.container().VolumeMounts {
		replace = append(replace, "="+m.MountPath, "="+filepath.Join(p.dir, m.MountPath))
	}
	for port, local := range p.ports {
		// Replace the ports in all forms of listen addresses.
		replace = append(replace,
			fmt.Sprintf("--secure-port=%d", port), fmt.Sprintf("--secure-port=%d\n--bind-address=127.0.0.1", local),
			fmt.Sprintf("=:%d", port), fmt.Sprintf("=127.0.0.1:%d", local),
			fmt.Sprintf("://0.0.0.0:%d", port), fmt.Sprintf("://127.0.0.1:%d", local))
	}
	// Pods that listen on their own loopback address share that of this machine.
	replace = append(replace, "://127.0.0.1:2382", fmt.Sprintf("://127.0.0.1:%d", p.site.newPort(t)))
	local := strings.NewReplacer(replace...).Replace(strings.Join(args, "\n"))
	for _, elsewhere := range []string{".svc:", "example.com", "0.0.0.0"} {
		if strings.Contains(local, elsewhere) {
			t.Fatalf("%s: the arguments have %q, which does not exist on this machine:\n%s", p.name, elsewhere, local)
		}
	}
	for port, at := range p.ports {
		if !strings.Contains(local, fmt.Sprint(at)) {
			t.Fatalf("%s: no argument has the port %d:\n%s", p.name, port, local)
		}
	}
	return strings.Split(local, "\n")
}

// awaitProbes sends the probes of a kubelet until all succeed: first the
// startup probe, then readiness and liveness.
func (p *pod) awaitProbes(t *testing.T) {
	t.Helper()
	// A kubelet does not verify certificates either.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for _, probe := range []*corev1.Probe{p.container().StartupProbe, p.container().ReadinessProbe, p.container().LivenessProbe} {
		if probe == nil {
			continue
		}
		url := p.url(t, probe.HTTPGet)
		if err := p.process.Await(ctx, func(context.Context) error {
			answer, err := client.Get(url)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("%s: %s", url, answer.Status)
			}
			return nil
		}); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
	}
}

func (p *pod) url(t *testing.T, get *corev1.HTTPGetAction) string {
	t.Helper()
	scheme := strings.ToLower(string(get.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	return fmt.Sprintf("%s://127.0.0.1:%d%s", scheme, p.port(t, get.Port.StrVal), get.Path)
}

// port returns the local port for the container's port of that name.
func (p *pod) port(t *testing.T, name string) int {
	t.Helper()
	for _, port := range p.container().Ports {
		if port.Name == name {
			return p.ports[port.ContainerPort]
		}
	}
	t.Fatalf("%s has no port %q", p.name, name)
	return 0
}

// presented returns the certificate that a server presents.
func (p *pod) presented(t *testing.T) *x509.Certificate { return p.presentedAt(t, "https") }

// presentedAt returns the certificate that is presented at a port.
func (p *pod) presentedAt(t *testing.T, port string) *x509.Certificate {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", p.port(t, port))
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) // the caller verifies it
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0]
}

// kill kills the process, and fails the test if it had a data race or panicked.
func (p *pod) kill(t *testing.T) {
	t.Helper()
	if p.process == nil {
		return
	}
	p.process.Kill()
	if err := p.process.Flaws(); err != nil {
		t.Errorf("%s: %v", p.name, err)
	}
}

// stop stops the process gracefully.
func (p *pod) stop(t *testing.T) {
	t.Helper()
	if err := p.process.Stop(); err != nil {
		t.Errorf("%s: %v", p.name, err)
	}
}
