// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdproxy is a proxy between a server and a member of etcd. It simulates
// an unreliable network.
package etcdproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	// watchMethod is the only method of etcd whose responses are delayed.
	watchMethod = "/etcdserverpb.Watch/Watch"
	// maxMessage is the maximum size of a message. Clients have lower limits.
	maxMessage = 256 << 20
)

// Proxy acts as the member for the server, without TLS. It can delay the events of
// watches, in order, but not reads and writes. It can lose the response to a call.
type Proxy struct {
	// Lose is called before the response to a call is delivered, with the method
	// (such as MethodTxn) and the encoded request. If it returns true, the server
	// gets Unavailable instead of the response, as if the member had just ended.
	// Set it before the server starts.
	Lose func(method string, request []byte) bool

	address string // HOST:PORT
	delay   atomic.Int64
	member  *grpc.ClientConn

	server  *grpc.Server
	serving chan error
}

// MethodTxn is the gRPC method of transactions.
const MethodTxn = "/etcdserverpb.KV/Txn"

// New starts a proxy without a delay and returns it. A nil TLS configuration is
// for a member without TLS.
func New(member string, tlsConfig *tls.Config) (*Proxy, error) {
	port, err := harness.FreePort()
	if err != nil {
		return nil, err
	}
	transport := insecure.NewCredentials()
	if tlsConfig != nil {
		transport = credentials.NewTLS(tlsConfig)
	}
	_, address, _ := strings.Cut(member, "://")
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("create a client of %s: %w", member, err)
	}
	p := &Proxy{address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), member: conn}
	return p, p.Serve()
}

// Endpoint returns the URL of the proxy.
func (p *Proxy) Endpoint() string { return "http://" + p.address }

// SetDelay sets the delay of the events of watches.
func (p *Proxy) SetDelay(delay time.Duration) { p.delay.Store(int64(delay)) }

// Serve starts to serve. After Cut, it serves on the same address again.
func (p *Proxy) Serve() error {
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		return fmt.Errorf("listen for a server: %w", err)
	}
	p.member.ResetConnectBackoff()
	p.server = grpc.NewServer(
		grpc.ForceServerCodec(rawCodec{}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.UnknownServiceHandler(func(_ any, up grpc.ServerStream) error { return p.forward(up) }))
	server, serving := p.server, make(chan error, 1)
	p.serving = serving
	go func() { serving <- server.Serve(listener) }()
	return nil
}

// Cut closes all connections and stops serving, as if the member had died.
// If it does not serve, nothing happens.
func (p *Proxy) Cut() error {
	if p.serving == nil {
		return nil
	}
	p.server.Stop()
	err := <-p.serving
	p.serving = nil
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) { // it had not begun
		return fmt.Errorf("forward to etcd: %w", err)
	}
	return nil
}

// Close stops the proxy and closes its connection to the member.
func (p *Proxy) Close() error { return errors.Join(p.Cut(), p.member.Close()) }

// message is a message of a response, and when to deliver it.
type message struct {
	data []byte
	due  time.Time
}

// forward forwards a call to the member, and the response back.
func (p *Proxy) forward(up grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(up)
	sent, _ := metadata.FromIncomingContext(up.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(up.Context(), sent))
	defer cancel()
	down, err := p.member.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	var request atomic.Pointer[[]byte] // the last message of the caller
	go func() {
		for {
			var data []byte
			if up.RecvMsg(&data) != nil {
				break // the caller has sent everything, or is gone
			}
			request.Store(&data)
			if down.SendMsg(&data) != nil {
				break // RecvMsg returns the error
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
				answer.due = time.Now().Add(time.Duration(p.delay.Load()))
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
		if err := poll.Sleep(ctx, time.Until(answer.due)); err != nil {
			return err
		}
		if p.Lose != nil && p.Lose(method, *request.Load()) {
			return status.Error(codes.Unavailable, "the response was lost")
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

// rawCodec does not decode messages.
type rawCodec struct{}

func (rawCodec) Name() string                       { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }
