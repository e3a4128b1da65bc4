// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/borough-io/borough/test/poll"
)

// Connections that are idle, or whose response is not read, are closed: a port for
// one connection serves the next client.
func TestConnectionLimits(t *testing.T) {
	large := strings.Repeat("x", 64<<20) // does not fit into the buffers of the connection
	handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/large" {
			fmt.Fprint(w, large)
		}
	})
	for name, request := range map[string]string{
		"nothing sent":  "",
		"half a header": "GET / HTTP/1.1\r\n",
		"idle":          "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"not read":      "GET /large HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() {
				served <- serve(ctx, listener, handler, connectionLimits{connections: 1, timeout: 100 * time.Millisecond})
			}()
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte(request)); err != nil {
				t.Fatal(err)
			}
			// In line behind the other. On a busy machine, this connection is closed as well.
			poll.Eventually(t, func() string {
				response, err := http.Get("http://" + listener.Addr().String())
				if err != nil {
					return err.Error()
				}
				_ = response.Body.Close()
				return ""
			})
			cancel()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}
