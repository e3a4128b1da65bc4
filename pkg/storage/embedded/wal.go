// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
)

// walState is the state of the write-ahead log.
type walState struct {
	// tail is the path of the newest segment, empty if there is none.
	tail string
	// last is the index of the last entry, 0 if there is none.
	last uint64
	// snapshot is the index of the entry after which etcd begins to replay.
	snapshot uint64
	// node is the ID of the member that wrote the log.
	node uint64
}

// readWAL reads the segments in dir, one record at a time. An incomplete record
// at the end of the last segment is not an error: a killed process leaves one, its
// content was not acknowledged, and etcd truncates it.
//
// etcd reads a log in the same way, but it also accepts a log that has lost
// acknowledged entries, which checkMember detects with the database.
func readWAL(dir string) (*walState, error) {
	segments, err := walSegments(dir)
	if err != nil {
		return nil, err
	}
	r := walReader{}
	for i, path := range segments {
		r.tail = path
		err := r.readSegment(path)
		torn := errors.Is(err, io.ErrUnexpectedEOF) && i == len(segments)-1 && r.records > 0
		if err != nil && !torn {
			return nil, err
		}
	}
	if r.entry != nil {
		r.last = wal.MustUnmarshalEntry(r.entry).GetIndex()
	}
	if err := r.chooseSnapshot(); err != nil {
		return nil, err
	}
	return &r.walState, nil
}

// walSegments returns the paths of the segments, oldest first.
func walSegments(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var paths []string
	for _, entry := range entries {
		// etcd ignores other names, such as those of segments that it preallocates or
		// has renamed as broken.
		var sequence, index uint64
		if _, err := fmt.Sscanf(entry.Name(), "%016x-%016x.wal", &sequence, &index); err == nil && strings.HasSuffix(entry.Name(), ".wal") {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	return paths, nil
}

// walReader collects the state from the records.
type walReader struct {
	walState
	crc       uint32
	records   int    // of the current segment
	entry     []byte // the last one
	commit    uint64
	snapshots []uint64
}

func (r *walReader) readSegment(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	decoder := wal.NewDecoder(fileutil.NewFileReader(f))
	decoder.UpdateCRC(r.crc)
	record := &walpb.Record{}
	for r.records = 0; ; r.records++ {
		err := decoder.Decode(record)
		if err == nil {
			err = r.add(decoder, record)
		}
		// The end of the file, or the preallocated space for later records.
		if errors.Is(err, io.EOF) && r.records > 0 {
			r.crc = decoder.LastCRC()
			return nil
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
			return err
		}
		if err != nil {
			return damaged(path, fmt.Errorf("record %d, at byte %d: %w", r.records, decoder.LastOffset(), err))
		}
	}
}

func (r *walReader) add(decoder wal.Decoder, record *walpb.Record) error {
	if r.records == 0 && record.GetType() != wal.CrcType {
		return errors.New("it has no header")
	}
	switch record.GetType() {
	case wal.CrcType:
		// Each segment begins with the checksum of the segments before it. The oldest
		// segment that etcd has kept need not be the first that it wrote.
		if before := decoder.LastCRC(); before != 0 && record.Validate(before) != nil {
			return errors.New("it does not continue the file before it")
		}
		decoder.UpdateCRC(record.GetCrc())
	case wal.MetadataType:
		metadata := &etcdserverpb.Metadata{}
		if err := proto.Unmarshal(record.GetData(), metadata); err != nil {
			return err
		}
		r.node = metadata.GetNodeID()
	case wal.StateType:
		r.commit = wal.MustUnmarshalState(record.GetData()).GetCommit()
	case wal.EntryType:
		r.entry = record.GetData() // decoding all of them would take as long as reading them
	case wal.SnapshotType:
		snapshot := &walpb.Snapshot{}
		if err := proto.Unmarshal(record.GetData(), snapshot); err != nil {
			return err
		}
		r.snapshots = append(r.snapshots, snapshot.GetIndex())
	default:
		return fmt.Errorf("its type, %d, is unknown", record.GetType())
	}
	return nil
}

// chooseSnapshot chooses the last committed snapshot, as etcd does.
func (r *walReader) chooseSnapshot() error {
	if r.tail == "" {
		return nil
	}
	for i := len(r.snapshots) - 1; i >= 0; i-- {
		if r.snapshots[i] <= r.commit {
			r.snapshot = r.snapshots[i]
			// If there are no entries after the snapshot, the log ends at the snapshot.
			r.last = max(r.last, r.snapshot)
			return nil
		}
	}
	return damaged(r.tail, errors.New("it is cut off: the log does not say where it begins"))
}
