// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package boroughtest

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/cmd/borough-apiserver/app/options"
	"github.com/borough-io/borough/pkg/certificates"
	"github.com/borough-io/borough/pkg/standalone"
)

const (
	host = "127.0.0.1"
	// Ports are below the range for outgoing connections. Otherwise such a connection
	// could take the port during Restart.
	minPort, maxPort = 15000, 32767

	startTimeout = time.Minute
	// userLifetime is how long the certificates of users are valid.
	userLifetime = 24 * time.Hour
)

// Server is a standalone Borough and its namespace controller, which run in the process
// of the test. Its methods can be called concurrently.
type Server struct {
	dir    string // the data directory
	port   int
	logger klog.Logger
	admin  *rest.Config
	ca     certificates.Pair
	// maxNamespacesPerUser is 0 for no limit.
	maxNamespacesPerUser int
	// reservation is a UDP socket on the port, which other processes of tests then do not take
	// during Restart.
	reservation net.PacketConn

	mu      sync.RWMutex // held for reading by requests of the package itself
	process *process     // nil if it does not run
}

// Option is an option of Start.
type Option func(*Server)

// WithLogger sets the logger of the server and the controller. What the libraries log
// without a context is not logged there, but by klog.
func WithLogger(logger klog.Logger) Option {
	return func(s *Server) { s.logger = logger }
}

// WithMaxNamespacesPerUser sets how many Namespaces each user may have that were created by
// NamespaceRequests of this user. A further request gets 403 with the cause
// NamespaceLimitReached. 0, the default, means no limit.
func WithMaxNamespacesPerUser(limit int) Option {
	return func(s *Server) { s.maxNamespacesPerUser = limit }
}

// Start starts a server on a free port of 127.0.0.1, and returns when it is ready. When
// the test ends, the server stops, and its data is removed. If the test has failed then,
// it logs what the servers of the process have logged.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	t.Cleanup(func() { logIfFailed(t) }) // also if the start or the stop fails
	s, err := start(t.TempDir(), options...)
	if err != nil {
		t.Fatalf("start Borough: %v", err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("stop Borough: %v", err)
		}
	})
	return s
}

func start(dir string, options ...Option) (_ *Server, err error) {
	s := &Server{dir: dir, logger: klog.Background()}
	for _, option := range options {
		option(s)
	}
	holdLog()
	if err := s.startFirst(); err != nil {
		return nil, err
	}
	return s, nil
}

// startFirst chooses a port, and creates the identities.
func (s *Server) startFirst() error {
	err := error(syscall.EADDRINUSE)
	for range maxPort - minPort {
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
		err = s.runOn(minPort + rand.IntN(maxPort-minPort+1))
	}
	if err != nil {
		return err
	}
	if err := s.readIdentities(); err != nil {
		return errors.Join(err, s.stop())
	}
	return nil
}

func (s *Server) readIdentities() (err error) {
	if s.ca, err = standalone.ReadCA(filepath.Join(s.dir, options.PKIDir), time.Now()); err != nil {
		return err
	}
	if s.admin, err = clientcmd.BuildConfigFromFlags("", filepath.Join(s.dir, options.AdminKubeconfig)); err != nil {
		return fmt.Errorf("read the kubeconfig of the admin: %w", err)
	}
	s.admin.QPS = -1
	return nil
}

// runOn reserves a port, and starts the process.
func (s *Server) runOn(port int) error {
	reservation, err := net.ListenPacket("udp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	s.port, s.reservation = port, reservation
	if err := s.run(); err != nil {
		_ = reservation.Close()
		return err
	}
	return nil
}

// run starts the process.
func (s *Server) run() (err error) {
	ctx, cancel := context.WithTimeout(klog.NewContext(context.Background(), s.logger), startTimeout)
	defer cancel()
	s.process, err = startProcess(ctx, s.dir, s.port, s.maxNamespacesPerUser)
	return err
}

func (s *Server) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.reservation.Close()
	if s.process == nil {
		return nil // a restart has failed
	}
	// To announce the end on connections would take a second.
	s.process.listener.cutOff()
	err := s.process.end(shutDown)
	s.process = nil
	return err
}

// Config returns a new client config of an administrator, who may do everything. It has
// no limit on requests.
func (s *Server) Config() *rest.Config {
	config := rest.CopyConfig(s.admin)
	for _, data := range []*[]byte{&config.CAData, &config.CertData, &config.KeyData} {
		*data = slices.Clone(*data)
	}
	return config
}

// As returns a new client config of a user in the groups, who authenticates with a client
// certificate. The user has only the rights that RBAC gives the user and the groups.
func (s *Server) As(t testing.TB, user string, groups ...string) *rest.Config {
	t.Helper()
	if user == "" {
		t.Fatal("create a client config: the name of the user is empty")
	}
	now := time.Now()
	template := certificates.Client(pkix.Name{CommonName: user, Organization: groups})
	pair, err := s.ca.Issue(template, now, now.Add(userLifetime))
	config := s.Config()
	if err == nil {
		config.CertData, config.KeyData, err = pair.EncodePEM()
	}
	if err != nil {
		t.Fatalf("create a client config for %s: %v", user, err)
	}
	return config
}

// Restart shuts the server and the controller down and starts them again, with the same
// address and data. Requests and watches are ended in an orderly way. It waits for
// Namespaces that other tests are removing.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.again(t, shutDown)
}

// Crash ends the server and the controller as if their process was killed, and starts them
// again, with the same address and data. Connections are cut off. A request in flight may
// have been carried out or not; no acknowledged write is lost. It waits for Namespaces that
// other tests are removing.
func (s *Server) Crash(t testing.TB) {
	t.Helper()
	s.again(t, kill)
}

func (s *Server) again(t testing.TB, how ending) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		t.Fatal("restart Borough: it has stopped")
	}
	err := s.process.end(how)
	s.process = nil
	if err == nil {
		err = s.run()
	}
	if err != nil {
		t.Fatalf("restart Borough at %s: %v", net.JoinHostPort(host, strconv.Itoa(s.port)), err)
	}
}
