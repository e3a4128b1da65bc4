// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package embedded runs one etcd member inside the process. The member does not
// listen on any address. It is accessible only with the client that Server returns,
// which calls the member's functions directly.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"k8s.io/klog/v2"
)

// DefaultQuotaBytes is the default limit for the size of the database: the largest
// that the etcd documentation recommends.
const DefaultQuotaBytes = 8 << 30

const (
	// A member without peers waits only for its own election timer. Short ticks make
	// the start fast, and there are no peers that could time out.
	tickMs        = 20
	electionTicks = 5
	// ephemeralTickMs costs CPU time while the member is idle.
	ephemeralTickMs = 2

	// Interval of progress notifications for watches that request them, as
	// Kubernetes recommends.
	progressInterval = 5 * time.Second

	// On start the database is defragmented if that frees at least this fraction
	// (1/32) of the quota.
	defragPart = 32

	// A start reads every file of the log three times, so they are fewer and smaller than
	// etcd's default of five files of 64 MB. etcd keeps more than this number while they
	// have entries since the last snapshot.
	maxLogFiles = 2
	logFileSize = 8 << 20

	// snapshotEntries is how many entries of the log etcd writes until it takes a snapshot.
	// etcd's default, 10,000, keeps gigabytes of files if the entries are large.
	snapshotEntries = 1_000

	// catchUpEntries is how many entries of the log, besides the last hundreds, etcd keeps
	// in memory for members that are behind. There are none, and entries can be large.
	catchUpEntries = 1

	// memberURL is the URL of the member in its member list. Nothing listens there.
	memberURL = "unix://borough:0"
)

// etcd has no option for it.
func init() { wal.SegmentSizeBytes = logFileSize }

// Config configures the member.
type Config struct {
	// Dir holds the member's data. It is created if missing, with mode 0700, and
	// nothing else may be kept in it.
	Dir string
	// QuotaBytes is the limit for the size of the database. The default (0) is
	// DefaultQuotaBytes. A full database allows only reads and deletes; it can be
	// written again after deletes have freed space and the member has restarted.
	QuotaBytes int64
	// Ephemeral is for data that need not survive a failure of the machine, as in tests.
	// The files are not synced to the disk, and the member starts faster.
	Ephemeral bool
}

// Server is a running etcd member.
type Server struct {
	etcd *embed.Etcd
	hook *fatalHook
	dir  *dataDir // nil once closed

	status *clientv3.Client // for Status; closed only by Close

	mu      sync.Mutex
	clients []*clientv3.Client
}

// Start starts the member and returns when it is ready for reads and writes. The
// context cancels only the start; use Close to stop the member. The member logs to
// the logger in the context.
//
// The error is one line that contains the directory. It is ErrInUse if another
// process uses the directory. If a file is damaged, the error contains the file,
// the damage, and how to recover.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	s, err := start(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("start etcd in data directory %q: %w", cfg.Dir, err)
	}
	return s, nil
}

func start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Dir == "" {
		return nil, errors.New("no directory given")
	}
	dir, err := openDir(cfg.Dir, cfg.Ephemeral)
	if err != nil {
		return nil, err
	}
	hook := newFatalHook(klog.FromContext(ctx).WithName("etcd"))

	type result struct {
		etcd *embed.Etcd
		err  error
	}
	started := make(chan result, 1)
	go func() {
		// Damaged files can make etcd and bbolt panic.
		defer hook.recover()
		etcd, err := embed.StartEtcd(newConfig(cfg, hook))
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
	case err := <-hook.failed:
		// Keep the lock: the files that etcd has opened cannot be closed, so a
		// second try in this process would wait for them forever.
		return nil, err
	}

	s := &Server{etcd: etcd, dir: dir, hook: hook}
	s.status = s.Client()
	ready := make(chan error, 1)
	go func() {
		defer hook.recover()
		select {
		case <-etcd.Server.ReadyNotify():
			ready <- s.makeRoom(ctx)
		case <-etcd.Server.StopNotify():
			ready <- errors.New("etcd stopped before it was ready")
		case <-ctx.Done():
			ready <- fmt.Errorf("wait for etcd to become ready: %w", context.Cause(ctx))
		}
	}()
	select {
	case err = <-ready:
	case err := <-hook.failed:
		return nil, err
	}
	if err == nil {
		err = dir.started()
	}
	if err != nil {
		etcd.Close()
		_ = dir.close()
		return nil, err
	}
	if err := hook.setStarted(); err != nil {
		return nil, err
	}
	// The lock is released when the garbage collector frees it. Keep a reference
	// until the member stops, even if the caller drops the Server.
	go func(done <-chan struct{}) {
		<-done
		runtime.KeepAlive(dir)
	}(s.Done())
	return s, nil
}

func newConfig(cfg Config, hook *fatalHook) *embed.Config {
	c := embed.NewConfig()
	c.Name = "borough"
	c.Dir = cfg.Dir
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(hook.zapLogger())

	c.ListenPeerUrls = nil
	c.ListenClientUrls = nil
	c.AdvertisePeerUrls = []url.URL{mustParse(memberURL)}
	c.AdvertiseClientUrls = []url.URL{mustParse(memberURL)}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.EnableGRPCGateway = false
	c.UnsafeNoFsync = cfg.Ephemeral
	c.MaxWalFiles = maxLogFiles
	c.SnapshotCount = snapshotEntries
	c.SnapshotCatchUpEntries = catchUpEntries

	c.TickMs = tickMs
	if cfg.Ephemeral {
		c.TickMs = ephemeralTickMs
	}
	c.ElectionMs = electionTicks * c.TickMs
	c.WatchProgressNotifyInterval = progressInterval
	c.QuotaBackendBytes = cfg.QuotaBytes
	if c.QuotaBackendBytes == 0 {
		c.QuotaBackendBytes = DefaultQuotaBytes
	}
	return c
}

// Client returns a new client of the member. It calls the member directly,
// without gRPC, and has no endpoints. Close closes it.
func (s *Server) Client() *clientv3.Client {
	c := v3client.New(s.etcd.Server)
	c.KV = readRetrier{c.KV}
	c.Watcher = newWatcher(c, s.etcd.Server)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, c)
	return c
}

// Status returns the member's status, or an error after Close: etcd would read a
// closed database, and panic.
func (s *Server) Status(ctx context.Context) (*clientv3.StatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == nil {
		return nil, errors.New("etcd is closed")
	}
	return s.status.Status(ctx, "")
}

// Done returns a channel that is closed when the member has stopped, for any reason.
func (s *Server) Done() <-chan struct{} { return s.etcd.Server.StopNotify() }

// Close closes the clients, stops the member and unlocks the directory. It may be
// called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == nil {
		return nil
	}
	s.hook.setStopping()
	// Open watches would delay the stop of the member.
	for _, c := range s.clients {
		_ = c.Close() // the only error is that it is already closed
	}
	s.etcd.Close()
	err := s.dir.close()
	s.dir = nil
	if err != nil {
		return fmt.Errorf("unlock etcd's data directory: %w", err)
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
