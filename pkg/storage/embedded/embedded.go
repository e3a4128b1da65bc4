// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package embedded runs one etcd member inside the process. It listens nowhere:
// the only way in is the client that Server hands out, which calls the member's
// functions directly.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"k8s.io/klog/v2"
)

// DefaultQuotaBytes is the size that the database may grow to: the largest that
// etcd's authors recommend.
const DefaultQuotaBytes = 8 << 30

const (
	// A member without peers waits for nobody's vote, only for its own election
	// timer: short ticks make the start quick, and no peer can be late.
	tickMs     = 20
	electionMs = 5 * tickMs

	// Watches that ask for progress hear of it this often, as Kubernetes
	// recommends.
	progressInterval = 5 * time.Second

	// The log entries that are kept in memory for members that lag behind. There
	// are none.
	catchUpEntries = 100

	// On start the database is defragmented when that frees this part of the
	// quota.
	defragPart = 32

	// memberURL names the member in its own member list. Nothing listens there.
	memberURL = "unix://borough:0"
)

// Config says how to run the member.
type Config struct {
	// Dir holds the member's data. It is created if missing, with mode 0700, and
	// nothing else may be kept in it.
	Dir string
	// QuotaBytes is the size that the database may grow to. The default (0) is
	// DefaultQuotaBytes. A database that is full can be read and deleted from;
	// when that has made room, a restart lets it be written again.
	QuotaBytes int64
}

// Server is a running etcd member.
type Server struct {
	etcd  *embed.Etcd
	guard *guard
	dir   *dataDir // nil once closed

	mu      sync.Mutex
	clients []*clientv3.Client
}

// Start starts the member and returns when it can be read and written. The
// context ends the start only; use Close to stop the member. Logging goes to the
// context's logger.
//
// The error is one line that names the directory: it is ErrInUse if another
// process runs on it, and tells files that are damaged or that may not be read
// or written from other causes.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	s, err := start(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("starting etcd in data directory %q: %w", cfg.Dir, err)
	}
	return s, nil
}

func start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Dir == "" {
		return nil, errors.New("no directory given")
	}
	dir, err := openDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	guard := newGuard(klog.FromContext(ctx).WithName("etcd"))

	type result struct {
		etcd *embed.Etcd
		err  error
	}
	started := make(chan result, 1)
	go func() {
		// Damaged files can make etcd and bbolt panic.
		defer guard.recover()
		etcd, err := embed.StartEtcd(newConfig(cfg, guard))
		started <- result{etcd, err}
	}()

	var etcd *embed.Etcd
	select {
	case r := <-started:
		if r.err != nil {
			_ = dir.close()
			return nil, fmt.Errorf("etcd cannot use its files: %w", r.err)
		}
		etcd = r.etcd
	case err := <-guard.failed:
		// The lock stays: what etcd had opened cannot be closed any more, so
		// a second try in this process would wait for it forever.
		return nil, err
	}

	select {
	case <-etcd.Server.ReadyNotify():
		s := &Server{etcd: etcd, dir: dir, guard: guard}
		if err = s.ready(ctx); err == nil {
			return s, nil
		}
	case err = <-guard.failed:
		return nil, err
	case <-etcd.Server.StopNotify():
		err = errors.New("etcd stopped before it was ready")
	case <-ctx.Done():
		err = fmt.Errorf("waiting for etcd to become ready: %w", context.Cause(ctx))
	}
	etcd.Close()
	_ = dir.close()
	return nil, err
}

// ready finishes the start.
func (s *Server) ready(ctx context.Context) error {
	if err := s.disarm(ctx); err != nil {
		return err
	}
	if err := s.dir.started(); err != nil {
		return err
	}
	s.guard.start()
	// The lock goes when nothing refers to it any more, which must not be before
	// the member ends, even if the caller drops the Server.
	go func(dir *dataDir, done <-chan struct{}) {
		<-done
		runtime.KeepAlive(dir)
	}(s.dir, s.Done())
	return nil
}

// disarm lets the member be written again if it was full and, defragmented, is
// not any more. In a cluster somebody would do so with etcdctl, which has no way
// in here.
func (s *Server) disarm(ctx context.Context) error {
	if s.etcd.Server.Backend().Size() >= s.etcd.Config().QuotaBackendBytes {
		return nil
	}
	client := s.Client()
	alarms, err := client.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("listing alarms: %w", err)
	}
	for _, alarm := range alarms.Alarms {
		if alarm.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		if _, err := client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
			return fmt.Errorf("lifting the alarm that the database is full: %w", err)
		}
	}
	return nil
}

func newConfig(cfg Config, guard *guard) *embed.Config {
	c := embed.NewConfig()
	c.Name = "borough"
	c.Dir = cfg.Dir
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(guard.zapLogger())

	c.ListenPeerUrls = nil
	c.ListenClientUrls = nil
	c.AdvertisePeerUrls = []url.URL{mustParse(memberURL)}
	c.AdvertiseClientUrls = []url.URL{mustParse(memberURL)}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.EnableGRPCGateway = false

	c.TickMs = tickMs
	c.ElectionMs = electionMs
	c.WatchProgressNotifyInterval = progressInterval
	c.SnapshotCatchUpEntries = catchUpEntries
	c.QuotaBackendBytes = cfg.QuotaBytes
	if c.QuotaBackendBytes == 0 {
		c.QuotaBackendBytes = DefaultQuotaBytes
	}
	c.BootstrapDefragThresholdMegabytes = max(1, uint(c.QuotaBackendBytes/defragPart)>>20)
	return c
}

// Client returns a new client of the member. It calls the member directly,
// without gRPC, and has no endpoints. It is closed with the Server at the
// latest.
func (s *Server) Client() *clientv3.Client {
	c := v3client.New(s.etcd.Server)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, c)
	return c
}

// Done is closed when the member has stopped, for whatever reason.
func (s *Server) Done() <-chan struct{} { return s.etcd.Server.StopNotify() }

// Close closes the clients, stops the member and gives the directory free. It
// may be called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == nil {
		return nil
	}
	s.guard.end()
	// Open watches would hold up the member's end.
	for _, c := range s.clients {
		_ = c.Close() // it can only report that it is closed
	}
	s.etcd.Close()
	err := s.dir.close()
	s.dir = nil
	if err != nil {
		return fmt.Errorf("unlocking etcd's data directory: %w", err)
	}
	return nil
}

func mustParse(s string) url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return *u
}
