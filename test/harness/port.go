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

// Ports are below the range for outgoing connections. Otherwise such a
// connection could take a port between FreePort and the listen.
const minPort, maxPort = 15000, 32767

// given has the ports that FreePort has returned.
var given sync.Map

// FreePort returns a free TCP port of 127.0.0.1. It never returns the same port
// twice.
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
