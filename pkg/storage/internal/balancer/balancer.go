// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/endpointsharding"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/connectivity"
)

// policy is the name of the load balancing policy in gRPC's registry.
const policy = "borough_etcd"

// serviceConfig selects the policy.
var serviceConfig = fmt.Sprintf(`{"loadBalancingConfig":[{%q:{}}]}`, policy)

func init() { balancer.Register(builder{}) }

// route is a value of the context of a request.
type route struct {
	preferred string // an address, or empty for any member
	// chosen is the address that the request was sent to. The picker sets it.
	chosen atomic.Pointer[string]
	// end ends the question who leads.
	end context.CancelFunc
}

type routeKey struct{}

func withRoute(ctx context.Context, r *route) context.Context {
	return context.WithValue(ctx, routeKey{}, r)
}

// routeOf returns the route of a request, or nil.
func routeOf(ctx context.Context) *route {
	r, _ := ctx.Value(routeKey{}).(*route)
	return r
}

// builder builds a round_robin balancer, which keeps a connection to each member, and
// replaces its picker.
type builder struct{}

func (builder) Name() string { return policy }

func (builder) Build(cc balancer.ClientConn, options balancer.BuildOptions) balancer.Balancer {
	return balancer.Get(roundrobin.Name).Build(clientConn{cc}, options)
}

// clientConn is what round_robin reports its picker to.
type clientConn struct{ balancer.ClientConn }

func (c clientConn) UpdateState(state balancer.State) {
	if state.ConnectivityState == connectivity.Ready {
		state.Picker = newPicker(endpointsharding.ChildStatesFromPicker(state.Picker))
	}
	c.ClientConn.UpdateState(state)
}

// picker picks the preferred member of a request if it is connected, and the connected
// ones in turn otherwise.
type picker struct {
	members []member
	next    atomic.Uint32
}

// member is a connected member.
type member struct {
	address string
	balancer.Picker
}

func newPicker(states []endpointsharding.ChildState) *picker {
	p := &picker{}
	for _, s := range states {
		if s.State.ConnectivityState == connectivity.Ready {
			p.members = append(p.members, member{s.Endpoint.Addresses[0].Addr, s.State.Picker})
		}
	}
	return p
}

// Pick implements balancer.Picker.
func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	r := routeOf(info.Ctx)
	m := p.member(r.preferred)
	r.chosen.Store(&m.address)
	return m.Pick(info)
}

// member returns the member with the address, or the next in turn if it is not
// connected.
func (p *picker) member(address string) *member {
	for i := range p.members {
		if p.members[i].address == address {
			return &p.members[i]
		}
	}
	return &p.members[p.next.Add(1)%uint32(len(p.members))]
}
