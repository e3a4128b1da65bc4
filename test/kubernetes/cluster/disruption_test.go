// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/poll"
)

// rule allows failures of requests.
type rule struct {
	name   string
	allows func(failure) bool
	most   int // how many of one disruption
}

type rules []rule

var (
	// planned are the rules of a planned restart. Clients retry both automatically
	// or, without Retry-After, know that the request was not processed.
	planned = rules{
		{"429 with Retry-After", func(f failure) bool { return f.code == http.StatusTooManyRequests && f.retryAfter }, math.MaxInt},
		// The HTTP/2 client of kube-apiserver cannot repeat a request whose body it
		// has sent.
		{"503 with GOAWAY", func(f failure) bool {
			return f.code == http.StatusServiceUnavailable && strings.Contains(f.text, "GOAWAY")
		}, 10},
	}
	// killed are the rules of a server that is killed: requests to it break, until
	// the Service is updated.
	killed = append(slices.Clip(planned),
		rule{"503 or 504", func(f failure) bool {
			return f.code == http.StatusServiceUnavailable || f.code == http.StatusGatewayTimeout
		}, math.MaxInt},
		rule{"broken connection", func(f failure) bool {
			return f.code == 0 || f.verb == "watch" && f.code == http.StatusInternalServerError // the stream of events
		}, math.MaxInt},
	)
	// outage are the rules while the only member of etcd restarts.
	outage = append(slices.Clip(killed),
		rule{"500", func(f failure) bool { return f.code == http.StatusInternalServerError }, math.MaxInt})
)

// check returns an error if a failure is not allowed. Each counts for the first rule
// that allows it.
func (r rules) check(failures map[failure]int) error {
	var errs []error
	counts := make([]int, len(r))
	for f, n := range failures {
		i := slices.IndexFunc(r, func(r rule) bool { return r.allows(f) })
		if i < 0 {
			errs = append(errs, fmt.Errorf("%d x %s", n, f))
			continue
		}
		counts[i] += n
	}
	for i, rule := range r {
		if counts[i] > rule.most {
			errs = append(errs, fmt.Errorf("%d x %s, want at most %d", counts[i], rule.name, rule.most))
		}
	}
	return errors.Join(errs...)
}

// disrupt disrupts Borough under load. Each disruption must leave a healthy
// deployment.
func (s *site) disrupt(t *testing.T) {
	restartOfEtcd := planned
	if s.members == 1 {
		restartOfEtcd = outage
	}
	for _, d := range []struct {
		name  string
		rules rules
		run   func(*testing.T, *load)
	}{
		{"servers restarted", planned, s.restart(server)},
		{"controllers restarted", planned, s.restart(controller)},
		{"etcd restarted", restartOfEtcd, s.restart(etcd)},
		{"servers killed", killed, s.killServers},
		// Requests do not depend on the controllers. That Namespaces that are deleted
		// now disappear is checked when the load ends.
		{"leading controller killed", planned, func(t *testing.T, _ *load) { s.kill(t, controller, s.leader(t)) }},
		{"node drained", restartOfEtcd, s.drain},
		{"nodes die", killed, s.killNodes},
	} {
		s.step(t, d.name, func(t *testing.T) {
			switch {
			case strings.HasPrefix(d.name, "node") && s.nodes < 2:
				t.Skip("Pods can be scheduled to only one node")
			case d.name == "nodes die" && (s.nodeDown == "" || s.nodeUp == ""):
				t.Skip("BOROUGH_CLUSTER_NODE_DOWN and BOROUGH_CLUSTER_NODE_UP are not set: the commands that end and start a node")
			}
			l := s.startLoad(t)
			d.run(t, l)
			s.awaitRollout(t)
			l.finish(t, d.rules)
		})
	}
}

func (s *site) restart(workload string) func(*testing.T, *load) {
	return func(t *testing.T, _ *load) {
		s.kubectl.Run(t, "--namespace="+systemNamespace, "rollout", "restart", workload)
		s.awaitRollout(t, workload)
	}
}

// killServers kills the servers one by one, because kube-apiserver may send all
// requests to one of them.
func (s *site) killServers(t *testing.T, l *load) {
	for _, pod := range s.pods(t, server) {
		s.kill(t, server, pod.Name)
		l.awaitServed(t)
	}
}

// kill deletes a Pod without a grace period.
func (s *site) kill(t *testing.T, workload, pod string) {
	t.Helper()
	s.replace(t, workload, pod, "--grace-period=0", "--force")
}

// replace deletes a Pod and waits for another one to be ready instead.
func (s *site) replace(t *testing.T, workload, name string, flags ...string) {
	t.Helper()
	t.Logf("delete Pod %s %s", name, strings.Join(flags, " "))
	before := s.pods(t, workload)
	s.kubectl.Run(t, append([]string{"--namespace=" + systemNamespace, "delete", "pod", name}, flags...)...)
	err := poll.Until(t.Context(), timeout, func(context.Context) error {
		ready := 0
		for _, pod := range s.pods(t, workload) {
			isNew := !slices.ContainsFunc(before, func(old corev1.Pod) bool { return old.UID == pod.UID })
			if pod.DeletionTimestamp == nil && (pod.Name != name || isNew) && isReady(pod) {
				ready++
			}
		}
		if ready < len(before) {
			return fmt.Errorf("%d of %d Pods of %s are ready", ready, len(before), workload)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// leader returns the name of the Pod of the controller that holds the Lease.
func (s *site) leader(t *testing.T) string {
	t.Helper()
	lease, err := s.client.CoordinationV1().Leases(systemNamespace).Get(t.Context(), "borough-controller-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := s.pods(t, controller)
	i := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return strings.HasPrefix(*lease.Spec.HolderIdentity, pod.Name+"_") })
	if i < 0 {
		t.Fatalf("%s holds the Lease, which is no Pod", *lease.Spec.HolderIdentity)
	}
	return pods[i].Name
}

// drain removes the Pods of Borough from the node of a server. A member of etcd
// whose volume is on the node starts again when the node is back.
func (s *site) drain(t *testing.T, l *load) {
	t.Helper()
	node := s.pods(t, server)[0].Spec.NodeName
	t.Logf("drain %s", node)
	t.Cleanup(func() { // also if the test ends early
		if _, stderr, err := s.kubectl.Try(context.Background(), "", "uncordon", node); err != nil {
			t.Errorf("%v: %s", err, stderr)
		}
	})
	s.await(t, "drain", node, "--pod-selector="+selector, "--ignore-daemonsets", "--delete-emptydir-data", attempt)
	s.awaitRollout(t, server, controller)
	if s.members > 1 {
		l.awaitServed(t)
	}
	s.kubectl.Run(t, "uncordon", node)
}

// killNodes ends the nodes of the servers one by one, without warning, and starts each
// again after the load is served and doctor has reported the node.
func (s *site) killNodes(t *testing.T, l *load) {
	t.Helper()
	for _, pod := range s.pods(t, server) {
		node := pod.Spec.NodeName
		start := sync.OnceFunc(s.runOnNode(t, s.nodeUp, node))
		t.Cleanup(start) // if the test ends early
		t.Logf("end %s", node)
		s.runOnNode(t, s.nodeDown, node)()
		begin := time.Now()
		l.awaitServed(t)
		t.Logf("the load is served %.0f s after the end of the node", time.Since(begin).Seconds())
		s.awaitDoctor(t, map[string]string{"pods": "its node " + node + " has not been ready"})
		start()
		s.awaitDoctor(t, nil)
		l.awaitServed(t)
	}
}

// runOnNode returns a function that runs a command for a node, whose name it appends.
func (s *site) runOnNode(t *testing.T, command, node string) func() {
	return func() {
		out, err := exec.Command("bash", "-c", command+` "$1"`, "bash", node).CombinedOutput()
		if err != nil {
			t.Errorf("%s %s: %v\n%s", command, node, err, out)
		}
	}
}
