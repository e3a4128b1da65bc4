// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/harness"
)

// EtcdOptions configure an etcd.
type EtcdOptions struct {
	// Members is the number of members; 0 means 1.
	Members int
	// Unsafe acknowledges writes before they are on disk. It is for tests that
	// need only speed.
	Unsafe bool
	// QuotaBytes is the limit for the size of the database; 0 means etcd's default.
	QuotaBytes int64
	// Environment has further variables of the members, as NAME=VALUE.
	Environment []string
	// Restore, if not nil, makes the data of each member before it starts.
	Restore func(EtcdRestore) error
}

// EtcdRestore describes the member that Restore makes the data of.
type EtcdRestore struct {
	Name, PeerURL, DataDir string
	// Cluster has the names and URLs of all members, as in --initial-cluster.
	Cluster string
}

// Etcd is an etcd cluster whose connections all use TLS with client
// certificates.
type Etcd struct {
	Members []*EtcdMember

	pki pki
}

// EtcdMember is a member of an Etcd.
type EtcdMember struct {
	Process *harness.Process
	// Endpoint is the URL for clients. As in the manifest, it serves only gRPC.
	Endpoint string

	http        string // the URL for health checks
	etcd        *Etcd
	name        string
	environment []string
	args        []string
}

// StartEtcd starts an etcd with its state in dir, which must be empty or not
// exist, and returns once every member serves requests.
func StartEtcd(ctx context.Context, dir string, options EtcdOptions) (_ *Etcd, err error) {
	e := &Etcd{pki: pki{dir: filepath.Join(dir, "pki")}}
	ca := e.pki.newCA("ca")
	e.pki.issue(ca, "member", pkix.Name{CommonName: "member"}, "localhost", "127.0.0.1")
	e.pki.issue(ca, "client", pkix.Name{CommonName: "client"})
	if e.pki.err != nil {
		return nil, e.pki.err
	}

	var cluster, peers []string
	for i := range max(options.Members, 1) {
		ports, err := freePorts(3)
		if err != nil {
			return nil, err
		}
		client, peer, http := localURL(ports[0]), localURL(ports[1]), localURL(ports[2])
		member := &EtcdMember{Endpoint: client, http: http, etcd: e, name: fmt.Sprintf("etcd-%d", i), environment: options.Environment}
		cluster, peers = append(cluster, member.name+"="+peer), append(peers, peer)
		member.args = []string{
			"--name=" + member.name,
			"--data-dir=" + filepath.Join(dir, member.name),
			"--listen-client-urls=" + client,
			"--listen-client-http-urls=" + http,
			"--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--client-cert-auth",
			"--trusted-ca-file=" + e.CAFile(),
			"--cert-file=" + e.pki.file("member.crt"),
			"--key-file=" + e.pki.file("member.key"),
			"--peer-client-cert-auth",
			"--peer-trusted-ca-file=" + e.CAFile(),
			"--peer-cert-file=" + e.pki.file("member.crt"),
			"--peer-key-file=" + e.pki.file("member.key"),
		}
		if options.Unsafe {
			member.args = append(member.args, "--unsafe-no-fsync")
		}
		if options.QuotaBytes > 0 {
			member.args = append(member.args, fmt.Sprintf("--quota-backend-bytes=%d", options.QuotaBytes))
		}
		e.Members = append(e.Members, member)
	}
	if options.Restore != nil {
		for i, member := range e.Members {
			restore := EtcdRestore{member.name, peers[i], filepath.Join(dir, member.name), strings.Join(cluster, ",")}
			if err := options.Restore(restore); err != nil {
				return nil, fmt.Errorf("restore %s: %w", member.name, err)
			}
		}
	}
	defer func() {
		if err != nil {
			e.Kill()
		}
	}()
	// A member starts only once a majority has started.
	errs := make([]error, len(e.Members))
	var starting sync.WaitGroup
	for i, member := range e.Members {
		member.args = append(member.args, "--initial-cluster="+strings.Join(cluster, ","))
		starting.Go(func() { errs[i] = member.Start(ctx) })
	}
	starting.Wait()
	return e, errors.Join(errs...)
}

// StartEtcdForTest calls StartEtcd for a test and kills the members when the
// test ends. If the test failed, it logs the members' logs.
func StartEtcdForTest(t testing.TB, dir string, options EtcdOptions) *Etcd {
	t.Helper()
	e, err := StartEtcd(t.Context(), dir, options)
	if err != nil {
		t.Fatalf("start etcd: %v", err)
	}
	t.Cleanup(func() {
		e.Kill()
		if t.Failed() {
			t.Log(tails(e.processes()...))
		}
	})
	return e
}

// Start starts or restarts a member and returns once it serves requests.
func (m *EtcdMember) Start(ctx context.Context) error {
	config := &rest.Config{Host: m.http, TLSClientConfig: rest.TLSClientConfig{
		CAFile:   m.etcd.CAFile(),
		CertFile: m.etcd.CertFile(),
		KeyFile:  m.etcd.KeyFile(),
	}}
	path, err := Binary("etcd")
	if err != nil {
		return err
	}
	program, args := path, m.args
	if len(m.environment) > 0 {
		program, args = "env", slices.Concat(m.environment, []string{path}, m.args)
	}
	m.Process, err = harness.StartReady(ctx, config, "/readyz", program, args...)
	return err
}

// Kill kills all members. Their data remains.
func (e *Etcd) Kill() { kill(e.processes()...) }

// Endpoints returns the client URLs of all members, separated by commas.
func (e *Etcd) Endpoints() string {
	var endpoints []string
	for _, member := range e.Members {
		endpoints = append(endpoints, member.Endpoint)
	}
	return strings.Join(endpoints, ",")
}

// CAFile returns the path of the certificate of the CA that signed the members'
// certificates.
func (e *Etcd) CAFile() string { return e.pki.file("ca.crt") }

// CertFile returns the path of the certificate of a client with all rights.
func (e *Etcd) CertFile() string { return e.pki.file("client.crt") }

// KeyFile returns the path of the key for CertFile.
func (e *Etcd) KeyFile() string { return e.pki.file("client.key") }

// ClientFlags returns the flags of an API server that uses this etcd.
func (e *Etcd) ClientFlags() []string {
	return []string{
		"--etcd-servers=" + e.Endpoints(),
		"--etcd-cafile=" + e.CAFile(),
		"--etcd-certfile=" + e.CertFile(),
		"--etcd-keyfile=" + e.KeyFile(),
	}
}

// TLSConfig returns the configuration of a client with CertFile.
func (e *Etcd) TLSConfig() (*tls.Config, error) {
	files := transport.TLSInfo{CertFile: e.CertFile(), KeyFile: e.KeyFile(), TrustedCAFile: e.CAFile()}
	config, err := files.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the TLS files for etcd: %w", err)
	}
	return config, nil
}

// NewClient returns a client of the endpoints, by default those of all members.
// The caller closes it.
func (e *Etcd) NewClient(endpoints ...string) (*clientv3.Client, error) {
	config, err := e.TLSConfig()
	if err != nil {
		return nil, err
	}
	if len(endpoints) == 0 {
		endpoints = strings.Split(e.Endpoints(), ",")
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		TLS:                  config,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 10 * time.Second,
		Logger:               zap.NewNop(), // failed members are expected
	})
	if err != nil {
		return nil, fmt.Errorf("make a client of etcd: %w", err)
	}
	return client, nil
}

func (e *Etcd) processes() []*harness.Process {
	var processes []*harness.Process
	for _, member := range e.Members {
		processes = append(processes, member.Process)
	}
	return processes
}
