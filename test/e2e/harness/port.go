// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are taken from below those that systems give to outgoing connections,
// one of which could have a port before whoever it is for listens on it.
const minPort, maxPort = 15000, 32767

// given are the ports that this process has been given.
var given sync.Map

// FreePort returns a TCP port that was free on 127.0.0.1 a moment ago, and never
// the same twice.
func FreePort() (int, error) {
	var err error
	for range 1000 {
		port := minPort + rand.IntN(maxPort-minPort+1)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		var listener net.Listener
		if listener, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}
