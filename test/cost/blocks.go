// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/coverage"
)

// blocks returns how many basic blocks have been executed in the instrumented
// packages since coverage.ClearCounters. It reads the file of counters that the
// runtime writes, whose format go tool covdata reads too; the runtime offers no
// other way, and this one only in a program that is not a test.
func blocks() (sum uint64, err error) {
	var file bytes.Buffer
	if err := coverage.WriteCounters(&file); err != nil {
		return 0, err
	}
	data := file.Bytes()
	const header, segment, version, uleb128 = 32, 16, 1, 2
	if len(data) < header+segment || string(data[:4]) != "\x00cwm" || binary.LittleEndian.Uint32(data[4:]) != version || data[24] != uleb128 {
		return 0, fmt.Errorf("read the counters: unknown format %x", data[:min(len(data), header)])
	}
	functions := binary.LittleEndian.Uint64(data[header:])
	strings := int(binary.LittleEndian.Uint32(data[header+8:]))
	args := int(binary.LittleEndian.Uint32(data[header+12:]))
	data = data[header+segment+strings+args:]
	next := func() (value uint64) {
		var n int
		if value, n = binary.Uvarint(data); n <= 0 {
			err = errors.New("read the counters: they end too early")
			return 0
		}
		data = data[n:]
		return value
	}
	for range functions {
		counters := next()
		next() // package
		next() // function
		for range counters {
			sum += next()
		}
	}
	return sum, err
}
