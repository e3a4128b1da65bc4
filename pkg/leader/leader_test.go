// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	componentconfig "k8s.io/component-base/config"
	"k8s.io/utils/ptr"

	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// faultyLeases is a client of the Lease that returns the error of fault, if there is one.
type faultyLeases struct {
	coordinationv1client.LeaseInterface
	// fault is called for each request, with the Lease that it writes or nil.
	fault func(ctx context.Context, lease *coordinationv1.Lease) error
}

func (l *faultyLeases) Leases(string) coordinationv1client.LeaseInterface { return l }

func (l *faultyLeases) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := l.fault(ctx, nil); err != nil {
		return nil, err
	}
	return l.LeaseInterface.Get(ctx, name, options)
}

func (l *faultyLeases) Update(ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if err := l.fault(ctx, lease); err != nil {
		return nil, err
	}
	return l.LeaseInterface.Update(ctx, lease, options)
}

// TestOneLeader ends the leadership of a process while another one waits for it. The work
// of the other one never begins before that of the first has returned.
func TestOneLeader(t *testing.T) {
	for name, tc := range map[string]struct {
		// fault is called for each request of the first process from then on. The channel
		// is closed when the other process works.
		fault func(ctx context.Context, lease *coordinationv1.Lease, otherWorks <-chan struct{}) error
		// ends ends the context of the first process.
		ends bool
		want error // of the first process
	}{
		"requests hang": {
			fault: func(ctx context.Context, _ *coordinationv1.Lease, _ <-chan struct{}) error {
				<-ctx.Done()
				return ctx.Err()
			},
			want: ErrLost,
		},
		"the Lease can be released, but not renewed": {
			fault: func(_ context.Context, lease *coordinationv1.Lease, _ <-chan struct{}) error {
				if lease != nil && ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
					return errors.New("refused")
				}
				return nil
			},
			want: ErrLost,
		},
		"the Get of the release is answered late": {
			fault: func(ctx context.Context, lease *coordinationv1.Lease, otherWorks <-chan struct{}) error {
				if lease != nil && ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
					return errors.New("refused")
				}
				select {
				case <-otherWorks:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			},
			want: ErrLost,
		},
		"the context ends": {ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset().CoordinationV1()
				var faulty atomic.Bool
				otherWorks := make(chan struct{})
				leases := &faultyLeases{client.Leases("ns"), func(ctx context.Context, lease *coordinationv1.Lease) error {
					if faulty.Load() {
						return tc.fault(ctx, lease, otherWorks)
					}
					return nil
				}}
				began, waiting := make(chan struct{}), make(chan string)
				var working atomic.Int32
				run := func(ctx context.Context, config Config) <-chan error {
					config.LeaderElectionConfiguration = componentconfig.LeaderElectionConfiguration{
						ResourceNamespace: "ns", ResourceName: "lease",
						LeaseDuration: metav1.Duration{Duration: 15 * time.Second},
						RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
						RetryPeriod:   metav1.Duration{Duration: 2 * time.Second},
					}
					ended := make(chan error)
					go func() {
						ended <- Run(ctx, config, func(ctx context.Context) {
							if working.Add(1) > 1 {
								t.Error("two processes work at once")
							}
							began <- struct{}{}
							<-ctx.Done()
							time.Sleep(4 * time.Second) // the work takes that long to return
							working.Add(-1)
						})
					}()
					return ended
				}
				ctx, cancel := context.WithCancel(t.Context())
				first := run(ctx, Config{Leases: leases})
				<-began
				otherCtx, cancelOther := context.WithCancel(t.Context())
				other := run(otherCtx, Config{Leases: client, Waiting: func(holder string) { waiting <- holder }})
				<-waiting

				faulty.Store(tc.fault != nil)
				if tc.ends {
					cancel()
				}
				<-began
				close(otherWorks)
				if err := <-first; !errors.Is(err, tc.want) {
					t.Errorf("the first process returned %v, want %v", err, tc.want)
				}
				lease, err := client.Leases("ns").Get(t.Context(), "lease", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
					t.Error("the Lease has no holder while the other process works")
				}
				cancelOther()
				if err := <-other; err != nil {
					t.Errorf("the other process returned %v", err)
				}
				cancel()
			})
		})
	}
}
