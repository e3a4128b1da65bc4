// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package boroughtest

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

// failingListener fails to accept once.
type failingListener struct {
	net.Listener
	err error
}

// Accept implements net.Listener.
func (l *failingListener) Accept() (net.Conn, error) {
	if err := l.err; err != nil {
		l.err = nil
		return nil, err
	}
	return l.Listener.Accept()
}

// TestAcceptAfterError accepts a connection after there were too many open files.
func TestAcceptAfterError(t *testing.T) {
	l, err := listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tooMany := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept", syscall.EMFILE)}
	l.Listener = &failingListener{l.Listener, tooMany}
	if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
		t.Fatalf("got %v, want %v", err, tooMany)
	}
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := accepted.Close(); err != nil {
		t.Error(err)
	}
}
