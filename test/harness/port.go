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

// reserved has a UDP socket for each port that FreePort has returned. A port can be
// reserved only once, also by the tests in other processes.
var reserved struct {
	sync.Mutex
	sockets []net.PacketConn
}

// FreePort returns a free TCP port of 127.0.0.1. It never returns the same port
// twice, and no other process of the tests gets it until this one ends.
func FreePort() (int, error) {
	var err error
	for range 1000 {
		port := minPort + rand.IntN(maxPort-minPort+1)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		var socket net.PacketConn
		if socket, err = net.ListenPacket("udp", address); err != nil {
			continue
		}
		var listener net.Listener
		if listener, err = net.Listen("tcp", address); err != nil {
			_ = socket.Close()
			continue
		}
		reserved.Lock()
		defer reserved.Unlock()
		reserved.sockets = append(reserved.sockets, socket)
		return port, listener.Close()
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}
