// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
)

const (
	// watchMethod is the one method of etcd whose answers are delayed.
	watchMethod = "/etcdserverpb.Watch/Watch"
	// maxMessage bounds a message. Clients have their own bounds.
	maxMessage = 256 << 20
)

// lag stands between a server and a member of etcd, and lets the server hear
// late of all that changes: what it watches arrives after a delay, in order.
// Reads and writes are not delayed. To the server it is the member, in plain
// text.
type lag struct {
	address string // HOST:PORT
	delay   atomic.Int64
	member  *grpc.ClientConn

	server  *grpc.Server
	serving chan error
}

// newLag returns a lag that serves, without a delay.
func newLag(member string, tlsConfig *tls.Config) (*lag, error) {
	conn, err := grpc.NewClient(strings.TrimPrefix(member, "https://"),
		grpc.WithTransportCredentials(credentials.NewTLS(tlsConfig)),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", member, err)
	}
	l := &lag{address: "127.0.0.1:0", member: conn}
	return l, l.serve()
}

// endpoint is the URL for the server.
func (l *lag) endpoint() string { return "http://" + l.address }

// serve serves, at the same address again after it was cut.
func (l *lag) serve() error {
	listener, err := net.Listen("tcp", l.address)
	if err != nil {
		return fmt.Errorf("listen for a server: %w", err)
	}
	l.address = listener.Addr().String()
	l.member.ResetConnectBackoff()
	l.server = grpc.NewServer(
		grpc.ForceServerCodec(rawCodec{}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.UnknownServiceHandler(func(_ any, up grpc.ServerStream) error { return l.forward(up) }))
	server, serving := l.server, make(chan error, 1)
	l.serving = serving
	go func() { serving <- server.Serve(listener) }()
	return nil
}

// cut is what happens to the server's connections when the member dies.
func (l *lag) cut() error {
	l.server.Stop()
	if err := <-l.serving; err != nil {
		return fmt.Errorf("serve with a delay: %w", err)
	}
	return nil
}

// close ends a lag that serves.
func (l *lag) close() error { return errors.Join(l.cut(), l.member.Close()) }

// message is an answer, and when to deliver it.
type message struct {
	data []byte
	due  time.Time
}

// forward makes a call in the name of another.
func (l *lag) forward(up grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(up)
	sent, _ := metadata.FromIncomingContext(up.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(up.Context(), sent))
	defer cancel()
	down, err := l.member.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		for {
			var data []byte
			if up.RecvMsg(&data) != nil {
				break // the caller has said all, or has gone
			}
			if down.SendMsg(&data) != nil {
				break // the answer tells why
			}
		}
		_ = down.CloseSend() // never fails
	}()

	answers := make(chan message, 1<<14)
	ended := make(chan error, 1)
	go func() {
		defer close(answers)
		for {
			var answer message
			if err := down.RecvMsg(&answer.data); err != nil {
				ended <- err
				return
			}
			if method == watchMethod {
				answer.due = time.Now().Add(time.Duration(l.delay.Load()))
			}
			select {
			case answers <- answer:
			case <-ctx.Done():
				ended <- ctx.Err()
				return
			}
		}
	}()
	for answer := range answers {
		if err := pause(ctx, time.Until(answer.due)); err != nil {
			return err
		}
		if err := up.SendMsg(&answer.data); err != nil {
			return err
		}
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// rawCodec leaves messages as they are.
type rawCodec struct{}

func (rawCodec) Name() string                       { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }
