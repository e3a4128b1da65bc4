// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package boroughtest_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/boroughtest"
	"github.com/borough-io/borough/test/poll"
)

// restarts are the ways to restart a server.
var restarts = map[string]func(*boroughtest.Server, testing.TB){
	"Restart": (*boroughtest.Server).Restart,
	"Crash":   (*boroughtest.Server).Crash,
}

// TestRestart restarts a server while clients write, and checks that the address is the
// same, no acknowledged write is lost, an informer from before has all Pods, and the
// controller deletes Namespaces.
func TestRestart(t *testing.T) {
	for name, restart := range restarts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := boroughtest.Start(t)
			ns, client := s.Namespace(t), newClient(t, s.Config())

			factory := informers.NewSharedInformerFactory(client, 0)
			store := factory.Core().V1().Pods().Informer().GetStore()
			ctx, cancel := context.WithCancel(t.Context())
			factory.StartWithContext(ctx)
			defer factory.Shutdown()
			defer cancel()
			factory.WaitForCacheSync(t.Context().Done())

			before := s.Config().Host
			stop := startWriters(t, s, ns)
			restart(s, t)
			acknowledged := append(stop(), create(t, client, ns, pod("last")).Name)
			if after := s.Config().Host; after != before {
				t.Errorf("the server was at %s, and is at %s", before, after)
			}

			pods, err := client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			exist := map[string]corev1.Pod{}
			for _, pod := range pods.Items {
				exist[pod.Name] = pod
			}
			for _, name := range acknowledged {
				if _, ok := exist[name]; !ok {
					t.Errorf("the Pod %s was acknowledged, and is lost", name)
				}
			}
			t.Logf("%d Pods, of which %d were acknowledged", len(exist), len(acknowledged))
			poll.Eventually(t, func() string {
				for name, pod := range exist {
					cached, ok, _ := store.GetByKey(ns + "/" + name)
					if !ok || cached.(*corev1.Pod).UID != pod.UID {
						return "the informer lacks the Pod " + name
					}
				}
				return ""
			})
		})
	}
}

// TestRestartDuringNamespaces restarts a server while other tests use Namespaces of it.
func TestRestartDuringNamespaces(t *testing.T) {
	for name, restart := range restarts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := boroughtest.Start(t)
			over := make(chan struct{})
			var tests sync.WaitGroup
			for range 4 {
				tests.Go(func() {
					for {
						fake := newFakeTest(t)
						s.Namespace(fake)
						fake.end()
						for _, err := range fake.errors {
							t.Error(err)
						}
						select {
						case <-over:
							return
						default:
						}
					}
				})
			}
			for range 3 {
				restart(s, t)
			}
			close(over)
			tests.Wait()
		})
	}
}

// startWriters starts clients that create Pods, of which each has its own connection. stop
// stops them and returns the names of the Pods that were acknowledged.
func startWriters(t *testing.T, s *boroughtest.Server, ns string) (stop func() []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var acknowledged []string
	var writers sync.WaitGroup
	first := make(chan struct{}, 1)
	for writer := range 4 {
		client := newClient(t, s.As(t, fmt.Sprintf("writer-%d", writer), "system:masters"))
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				created, err := client.CoreV1().Pods(ns).Create(ctx, pod(fmt.Sprintf("%d-%d", writer, i)), metav1.CreateOptions{})
				if err != nil {
					continue
				}
				mu.Lock()
				acknowledged = append(acknowledged, created.Name)
				mu.Unlock()
				select {
				case first <- struct{}{}:
				default:
				}
			}
		})
	}
	<-first
	return func() []string {
		cancel()
		writers.Wait()
		return acknowledged
	}
}

// TestEndOfConnections checks that Restart ends TLS before it closes a connection, and Crash
// does not.
func TestEndOfConnections(t *testing.T) {
	s := boroughtest.Start(t)
	for name, announced := range map[string]bool{"Restart": true, "Crash": false} {
		conn, received := connect(t, s.Config())
		before := received.bytes
		restarts[name](s, t)
		if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%s: after the end of the connection: got %d, %v", name, n, err)
		}
		if more := received.bytes - before; (more > 0) != announced {
			t.Errorf("%s: got %d bytes at the end of the connection", name, more)
		}
		_ = conn.Close() // the other end is closed
	}
}

// TestEndOfNewConnections checks that connections end that no request was received on yet.
func TestEndOfNewConnections(t *testing.T) {
	s := boroughtest.Start(t)
	for name, restart := range restarts {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.Config().Host, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		restart(s, t)
		// The server waits longer for a TLS handshake.
		err = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection is open: %v", name, err)
		}
		_ = conn.Close() // the other end is closed
	}
}

// counter counts the bytes that are received on a connection.
type counter struct {
	net.Conn
	bytes int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes += n
	return n, err
}

// connect returns a connection on which a request was answered.
func connect(t *testing.T, config *rest.Config) (*tls.Conn, *counter) {
	t.Helper()
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	options, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	options.ServerName = server.Hostname()
	dialed, err := net.Dial("tcp", server.Host)
	if err != nil {
		t.Fatal(err)
	}
	received := &counter{Conn: dialed}
	conn := tls.Client(received, options)
	if _, err := fmt.Fprintf(conn, "GET /livez HTTP/1.1\r\nHost: %s\r\n\r\n", server.Host); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET /livez: %v, %v", response, err)
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return conn, received
}
