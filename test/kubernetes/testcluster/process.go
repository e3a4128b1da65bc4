// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/borough-io/borough/test/harness"
)

const (
	// startTimeout is how long the API may take to be available after a start. It
	// usually takes seconds, but longer on a busy machine.
	startTimeout = 3 * time.Minute
	// logLines is the number of lines of each process's log that are shown after a
	// failure.
	logLines = 40
)

// kill kills the processes that were started.
func kill(processes ...*harness.Process) {
	for _, process := range processes {
		if process != nil {
			process.Kill()
		}
	}
}

func tails(processes ...*harness.Process) string {
	var logs []string
	for _, process := range processes {
		if process != nil {
			logs = append(logs, process.Tail(logLines))
		}
	}
	return strings.Join(logs, "\n")
}

// freePorts returns different TCP ports that were just free on 127.0.0.1.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		var err error
		if ports[i], err = harness.FreePort(); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

func localURL(port int) string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
