// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package balancer makes clients of etcd send their requests to the leader.
//
// Every member accepts requests, but a follower forwards writes to the leader, and asks
// it before each consistent read. That takes CPU time and a round trip. etcd's own client
// sends requests to all members in turn.
//
// Each response contains the member that has sent it and the term of raft. So the
// addresses of the members and the end of a term are known without further requests.
// When another member leads, the requests that the last leader has not answered end.
package balancer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// anyMemberEvery is the share of requests that any member gets: one in so many. A leader
// that hangs sends no response with a new term, but the other members do.
const anyMemberEvery = 16

// lateAfter is how long the leader may take. A request whose caller waits for less shows nothing
// about the leader if it ends without a response.
const lateAfter = time.Second

// Leader is the leader of an etcd cluster, as its clients in this process know it.
type Leader struct {
	requests atomic.Uint64
	// spread is how many of the next requests any member gets. A leader whose disk hangs
	// answers pings, and refuses writes, although another member leads, which only a response
	// of the others shows.
	spread atomic.Int64
	asking atomic.Bool
	known  atomic.Pointer[leadership]

	mu        sync.Mutex        // held to change known and addresses
	addresses map[uint64]string // of members, by ID
}

// leadership is the result of an election. IDs and addresses that are not known are zero.
type leadership struct {
	term    uint64
	member  uint64 // ID
	address string

	replaced context.Context // done when another member leads
	replace  context.CancelFunc
}

// NewLeader returns a Leader that is not known yet.
func NewLeader() *Leader {
	l := &Leader{addresses: map[uint64]string{}}
	l.known.Store(&leadership{replaced: context.Background(), replace: func() {}})
	return l
}

// DialOptions returns the options of a client that sends requests to the leader. All
// clients of a Leader must have the same endpoints.
func (l *Leader) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		// The resolver of etcd's client selects round_robin.
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithChainUnaryInterceptor(l.unary),
		grpc.WithChainStreamInterceptor(l.stream),
	}
}

func (l *Leader) unary(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if question := routeOf(ctx); question != nil { // who leads
		err := invoke(ctx, method, request, reply, cc, options...)
		if err != nil {
			question.end() // or etcd's client would ask 100 times
		}
		return err
	}
	known, r := l.known.Load(), &route{}
	if l.prefersLeader(request) {
		r.preferred = known.address
	}
	caller := ctx
	ctx, cancel := context.WithCancelCause(withRoute(ctx, r))
	defer cancel(nil)
	// A leader that hangs would otherwise be waited for until a keepalive fails.
	defer context.AfterFunc(known.replaced, func() {
		// A request without an address may be about to be sent to the leader.
		if chosen := r.chosen.Load(); chosen == nil || *chosen == known.address {
			cancel(rpctypes.ErrGRPCLeaderChanged)
		}
	})()

	began := time.Now()
	err := invoke(ctx, method, request, reply, cc, options...)
	if err != nil {
		if context.Cause(ctx) == rpctypes.ErrGRPCLeaderChanged {
			return rpctypes.ErrGRPCLeaderChanged
		}
		code := status.Code(err)
		late := code == codes.DeadlineExceeded && time.Since(began) >= lateAfter
		if chosen := r.chosen.Load(); chosen != nil && *chosen == known.address && (code == codes.Unavailable || late) {
			l.spread.Store(anyMemberEvery)
		}
		if caller.Err() == nil && (code == codes.DeadlineExceeded || code == codes.Canceled) {
			// The member has given up. With these codes, etcd's client would repeat a
			// write that may have been carried out.
			return status.Error(codes.Unavailable, err.Error())
		}
		return err
	}
	l.observe(reply, r, cc)
	return nil
}

// prefersLeader reports whether a request is sent to the leader if possible. Any member
// gets reads of several keys, for which encoding the response takes more time than
// asking the leader.
func (l *Leader) prefersLeader(request any) bool {
	if read, ok := request.(*pb.RangeRequest); ok && len(read.RangeEnd) > 0 {
		return false
	}
	if l.spread.Load() > 0 {
		l.spread.Add(-1)
		return false
	}
	return l.requests.Add(1)%anyMemberEvery != 0
}

// stream observes the responses of watches, which any member serves.
func (l *Leader) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	r := &route{}
	s, err := open(withRoute(ctx, r), desc, cc, method, options...)
	if err != nil {
		return nil, err
	}
	return observedStream{s, l, r, cc}, nil
}

type observedStream struct {
	grpc.ClientStream
	leader *Leader
	route  *route
	cc     *grpc.ClientConn
}

// RecvMsg implements grpc.ClientStream.
func (s observedStream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	if err == nil {
		s.leader.observe(message, s.route, s.cc)
	}
	return err
}

// observe learns from a response of the member that a request was sent to.
func (l *Leader) observe(message any, r *route, cc *grpc.ClientConn) {
	response, ok := message.(interface{ GetHeader() *pb.ResponseHeader })
	if !ok {
		return
	}
	header, known, address := response.GetHeader(), l.known.Load(), *r.chosen.Load()
	ended := header.GetRaftTerm() > known.term
	if known.address != "" && !ended {
		return
	}
	l.learn(header.GetMemberId(), address)
	if ended && l.asking.CompareAndSwap(false, true) {
		go l.ask(cc, address, header.GetRaftTerm())
	}
}

// learn records the address of a member.
func (l *Leader) learn(member uint64, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addresses[member] = address
	if known := l.known.Load(); known.member == member {
		l.set(known.term, member)
	}
}

// ask asks the member at an address, which has just responded, who leads. It returns at
// the latest when the connection is closed or found broken, as the one that the library
// opens to ask for the version is. If the leader is not known then, the next response is
// the reason to ask again. If the client may not ask, as a user of an etcd 3.6 with
// authentication, the leader is not known in this term.
func (l *Leader) ask(cc *grpc.ClientConn, address string, term uint64) {
	defer l.asking.Store(false)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ctx = withRoute(ctx, &route{preferred: address, end: cancel})
	answer, err := pb.NewMaintenanceClient(cc).Status(ctx, &pb.StatusRequest{})
	var leader uint64
	switch {
	case status.Code(err) == codes.PermissionDenied:
	case err != nil || answer.Leader == 0:
		return
	default:
		term, leader = answer.RaftTerm, answer.Leader
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if term >= l.known.Load().term {
		l.set(term, leader)
	}
}

// set sets what is known. The lock must be held.
func (l *Leader) set(term, member uint64) {
	last := l.known.Load()
	next := &leadership{term, member, l.addresses[member], last.replaced, last.replace}
	if member != last.member {
		next.replaced, next.replace = context.WithCancel(context.Background())
		defer last.replace()
	}
	l.known.Store(next)
}
