// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

const root = "../.."

// The tests start the binaries themselves, and not with test/harness: this module has
// other versions of the libraries, with which all that the harness needs would be
// compiled once more.

// live returns the series of a server, its controller and an etcd, after requests that
// many of the metrics need.
func live(t *testing.T) series {
	t.Helper()
	dir := t.TempDir()
	bin := os.Getenv("BOROUGH_BIN")
	if bin == "" {
		bin = filepath.Join(dir, "bin")
		run(t, root+"/hack/build.sh", "-o", bin+"/")
	}
	etcd := filepath.Join(dir, "etcd-binary")
	run(t, "go", "build", "-C", root, "-o", etcd, "go.etcd.io/etcd/server/v3")

	etcdClient, etcdPeer, etcdMetrics := "http://"+freeAddress(t), "http://"+freeAddress(t), "http://"+freeAddress(t)
	start(t, etcd, "--data-dir="+dir+"/etcd", "--unsafe-no-fsync", "--listen-metrics-urls="+etcdMetrics, "--name=a",
		"--listen-client-urls="+etcdClient, "--advertise-client-urls="+etcdClient,
		"--listen-peer-urls="+etcdPeer, "--initial-advertise-peer-urls="+etcdPeer, "--initial-cluster=a="+etcdPeer)
	await(t, http.DefaultClient, etcdMetrics+"/health")
	server := freeAddress(t)
	_, port, _ := net.SplitHostPort(server)
	data := dir + "/data"
	start(t, bin+"/borough-apiserver", "--standalone", "--data-dir="+data, "--bind-address=127.0.0.1", "--secure-port="+port, "--etcd-servers="+etcdClient)
	var admin *http.Client
	eventually(t, "the kubeconfig of the admin", func() error {
		var err error
		admin, err = client(data + "/admin.kubeconfig")
		return err
	})
	url := "https://" + server
	await(t, admin, url+"/readyz")
	// As in a cluster, with leader election, for which the user of the controller has no rights here.
	post(t, admin, url+"/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"leases"}}`)
	controller := "http://" + freeAddress(t)
	start(t, bin+"/borough-controller-manager", "--kubeconfig="+data+"/admin.kubeconfig", "--leader-elect-resource-namespace=leases", "--http-bind-address="+strings.TrimPrefix(controller, "http://"))
	await(t, http.DefaultClient, controller+"/readyz")

	post(t, admin, url+"/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`)
	post(t, admin, url+"/api/v1/namespaces/a/pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"c"}]}}`)
	request(t, admin, "DELETE", url+"/api/v1/namespaces/a", "", http.StatusOK)
	eventually(t, "the end of the Namespace", func() error {
		if code, _, err := do(t, admin, "GET", url+"/api/v1/namespaces/a", ""); err != nil || code != http.StatusNotFound {
			return fmt.Errorf("GET of the Namespace: %d (%w)", code, err)
		}
		return nil
	})

	// The removal of a Namespace with content fails, which counts as an error of etcd.
	post(t, admin, url+"/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b"}}`)
	post(t, admin, url+"/api/v1/namespaces/b/pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","finalizers":["example.com/hold"]},"spec":{"containers":[{"name":"c","image":"c"}]}}`)
	request(t, admin, "DELETE", url+"/api/v1/namespaces/b", "", http.StatusOK)
	request(t, admin, "PUT", url+"/api/v1/namespaces/b/finalize", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b"}}`, http.StatusOK)

	s := series{}
	for job, body := range map[string]string{
		"borough-apiserver":          request(t, admin, "GET", url+"/metrics", "", http.StatusOK),
		"borough-controller-manager": request(t, http.DefaultClient, "GET", controller+"/metrics", "", http.StatusOK),
		"borough-etcd":               request(t, http.DefaultClient, "GET", etcdMetrics+"/metrics", "", http.StatusOK),
	} {
		if err := s.parseMetrics(job, body); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run runs a program to its end, and returns its output without that to stderr.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer // go build writes to the second what it downloads
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s%s", program, args, err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// start starts a program that the end of the test stops.
func start(t *testing.T, program string, args ...string) {
	t.Helper()
	var output bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(program), &output)
		}
	})
}

// base64Bytes are in base64 in YAML.
type base64Bytes []byte

func (b *base64Bytes) UnmarshalYAML(node *yaml.Node) (err error) {
	*b, err = base64.StdEncoding.DecodeString(node.Value)
	return err
}

// client returns a client with the certificates in a kubeconfig.
func client(kubeconfig string) (*http.Client, error) {
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				CA base64Bytes `yaml:"certificate-authority-data"`
			}
		}
		Users []struct {
			User struct {
				Certificate base64Bytes `yaml:"client-certificate-data"`
				Key         base64Bytes `yaml:"client-key-data"`
			}
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil || len(config.Clusters) != 1 || len(config.Users) != 1 {
		return nil, errors.Join(err, errors.New("the kubeconfig has not one cluster and one user"))
	}
	certificate, err := tls.X509KeyPair(config.Users[0].User.Certificate, config.Users[0].User.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(config.Clusters[0].Cluster.CA) {
		return nil, errors.New("the kubeconfig has no CA")
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: roots}}}, nil
}

func post(t *testing.T, client *http.Client, url, body string) {
	t.Helper()
	request(t, client, "POST", url, body, http.StatusCreated)
}

// request returns the body of the response to a request, which must have the code.
func request(t *testing.T, client *http.Client, method, url, body string, want int) string {
	t.Helper()
	code, answer, err := do(t, client, method, url, body)
	if err != nil || code != want {
		t.Fatalf("%s %s: %d %s (%v)", method, url, code, answer, err)
	}
	return answer
}

func do(t *testing.T, client *http.Client, method, url, body string) (int, string, error) {
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

// await waits until a GET returns 200.
func await(t *testing.T, client *http.Client, url string) {
	t.Helper()
	eventually(t, url, func() error {
		code, body, err := do(t, client, "GET", url, "")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
}

// eventually waits until the condition returns nil.
func eventually(t *testing.T, what string, condition func() error) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(time.Minute)
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// freeAddress returns an address that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
