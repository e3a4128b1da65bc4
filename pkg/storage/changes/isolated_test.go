// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"strings"
	"testing"

	"github.com/borough-io/borough/test/harness/etcdcluster"
)

// TestIsolatedMember isolates the member that the feed watches. It answers the client, but
// does not get what the others write: the feed has to leave it.
func TestIsolatedMember(t *testing.T) {
	t.Parallel() // it waits for elections
	etcd := etcdcluster.Start(t)
	isolated, others := etcd.Members[0], etcd.Members[1:]
	client, writer := etcdcluster.NewClient(t, isolated), etcdcluster.NewClient(t, others...)
	etcdcluster.Put(t, writer, "/r/a/n/x", "1")
	feed, lines := newFeed(client)
	run(t, feed)
	begin := <-lines
	if !strings.HasPrefix(begin, "reset") {
		t.Fatalf("got %s, want the objects", begin)
	}
	client.SetEndpoints(isolated.ClientURL(), others[0].ClientURL(), others[1].ClientURL())

	etcd.Isolate(isolated)
	revision := etcdcluster.Put(t, writer, "/r/a/n/x", "2")
	want(t, lines, "apply %d: a n/x@%d=2", revision, revision)
}
