// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticks is the number of clock ticks per second in /proc on every platform that
// Go supports.
const ticks = 100

// usage is the memory and CPU time that the processes of a side use.
type usage struct {
	memory float64 // resident, in bytes
	cpu    float64 // user and system, in seconds
}

func (s *side) usage() (usage, error) {
	var all usage
	for _, pid := range s.pids() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return usage{}, fmt.Errorf("read the usage of a process of %s: %w", s.name, err)
		}
		// The fields after the name in parentheses start with field 3 of
		// proc_pid_stat(5).
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		var values [3]float64
		for i, field := range []int{14, 15, 24} { // utime, stime, rss
			if values[i], err = strconv.ParseFloat(fields[field-3], 64); err != nil {
				return usage{}, fmt.Errorf("read the usage of a process of %s: %w", s.name, err)
			}
		}
		all.cpu += (values[0] + values[1]) / ticks
		all.memory += values[2] * float64(os.Getpagesize())
	}
	return all, nil
}

// anonymousMemory returns the resident memory of a process that is not a file's. The
// database of etcd is a file in memory.
func anonymousMemory(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	value, _ := procValue(string(status), "RssAnon")
	var kib float64
	if _, err := fmt.Sscanf(value, "%f kB", &kib); err != nil {
		return 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	return kib * (1 << 10), nil
}

// machineBusy returns the CPU time of all programs on the machine in seconds:
// user, nice and system in the first line of proc_stat(5).
func machineBusy() (float64, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of the machine: %w", err)
	}
	var user, nice, system float64
	if _, err := fmt.Sscanf(string(stat), "cpu %f %f %f", &user, &nice, &system); err != nil {
		return 0, fmt.Errorf("read the CPU time of the machine: %w", err)
	}
	return (user + nice + system) / ticks, nil
}

// spent returns the CPU time of this run: of this program, its finished child
// processes, and both sides.
func (b *bench) spent() (float64, error) {
	var all float64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err != nil {
			return 0, fmt.Errorf("read the CPU time of the run: %w", err)
		}
		all += time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
	}
	for _, s := range b.sides {
		used, err := s.usage()
		if err != nil {
			return 0, err
		}
		all += used.cpu
	}
	return all, nil
}

// measureIdle measures both sides while they are idle for a while.
func (b *bench) measureIdle(ctx context.Context, _ int) error {
	before := make([]usage, len(b.sides))
	for i, s := range b.sides {
		var err error
		if before[i], err = s.usage(); err != nil {
			return err
		}
	}
	if err := wait(ctx, b.size.idle); err != nil {
		return err
	}
	for i, s := range b.sides {
		after, err := s.usage()
		if err != nil {
			return err
		}
		b.report.add(s.name, []figure{
			{row: "Memory, idle", unit: bytesUnit, value: after.memory},
			{row: "CPU per second, idle", unit: seconds, value: (after.cpu - before[i].cpu) / b.size.idle.Seconds()},
		})
	}
	return nil
}

// measureEnd measures the CPU time of both sides since their start, and their memory when
// they have been idle for a while after the load that they share.
func (b *bench) measureEnd(ctx context.Context, _ int) error {
	for _, s := range b.sides {
		end, err := s.usage()
		if err != nil {
			return err
		}
		b.report.add(s.name, []figure{{row: "CPU, all of it", unit: seconds, value: end.cpu}})
	}
	if err := wait(ctx, b.size.settle); err != nil {
		return err
	}
	for _, s := range b.sides {
		end, err := s.usage()
		if err != nil {
			return err
		}
		b.report.add(s.name, []figure{{row: "Memory, after the load", unit: bytesUnit, value: end.memory}})
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
