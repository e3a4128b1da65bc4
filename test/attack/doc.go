// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attack sends hostile requests to a running server and judges what the
// server does with them.
//
// The requests come from generators, one file for each class of hostility:
// quantities, sizes, depth, encodings, protobuf, patches, parameters, headers,
// and random changes of all of these. Run sends each of them as every role, one
// after the other, and counts what the server does for it: bytes and objects
// that it allocates, bytes that it logs, bytes that it answers. A request is a
// finding if
//
//   - it has no answer, or one with a 5xx code that is not right for it,
//   - its answer gives a role what the role has no right to,
//   - it costs more than a multiple of an ordinary request of its size.
//
// Storms opens many connections and streams at once, sends bodies that never
// end, and hangs up. After all of that an ordinary request has to cost what it
// cost before, and the goroutines and the memory have to be back where they
// were.
//
// Nothing is judged by the clock. Work that allocates nothing shows in the CPU
// time of the process, which depends on the machine, so only a long run
// (Options.CPU) has a bound for it.
package attack
