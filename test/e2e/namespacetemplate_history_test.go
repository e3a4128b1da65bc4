// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

const etcdPrefix = "/registry/" + v1.GroupName + "/"

// replayTemplates reads the history of etcd. Each Namespace must have been created with
// the content of the template that existed at the revision of its creation, if there
// was one. There was never more than one. It returns the numbers of Namespaces that
// were created with a template and without.
func replayTemplates(t *testing.T, client *clientv3.Client) (with, without int) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	now, err := client.Get(t.Context(), etcdPrefix)
	if err != nil {
		t.Fatal(err)
	}
	var events []*clientv3.Event
	watch := client.Watch(t.Context(), etcdPrefix, clientv3.WithPrefix(), clientv3.WithRev(1))
	last, err := client.Get(t.Context(), etcdPrefix, clientv3.WithPrefix(), clientv3.WithRev(now.Header.Revision),
		clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend), clientv3.WithLimit(1), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	for len(events) == 0 || events[len(events)-1].Kv.ModRevision < last.Kvs[0].ModRevision {
		response, open := <-watch
		if err := response.Err(); err != nil || !open {
			t.Fatalf("the watch has ended: %v", err)
		}
		events = append(events, response.Events...)
	}
	var template *v1.NamespaceTemplate
	for len(events) > 0 {
		revision := events[0].Kv.ModRevision
		n := slices.IndexFunc(events, func(e *clientv3.Event) bool { return e.Kv.ModRevision != revision })
		if n < 0 {
			n = len(events)
		}
		written := map[string]bool{}
		for _, e := range events[:n] {
			written[strings.TrimPrefix(string(e.Kv.Key), etcdPrefix)] = e.IsCreate()
		}
		for key, created := range written {
			switch resource, name, _ := strings.Cut(key, "/"); {
			case resource == "namespacetemplates":
				template = nil
				if e := events[0]; e.Type != clientv3.EventTypeDelete {
					template = &v1.NamespaceTemplate{}
					if _, _, err := decoder.Decode(e.Kv.Value, nil, template); err != nil {
						t.Fatal(err)
					}
				}
			case resource != "namespaces" || !created || name == "default":
			case template == nil:
				if len(written) != 1 {
					t.Errorf("revision %d: without a template, %v were created", revision, written)
				}
				without++
			default:
				with++
				for _, key := range []string{
					"limitranges/" + name + "/" + template.Spec.LimitRange.Metadata.Name,
					"resourcequotas/" + name + "/" + template.Spec.ResourceQuota.Metadata.Name,
				} {
					if !written[key] {
						t.Errorf("revision %d: Namespace %s was created without %s", revision, name, key)
					}
				}
			}
		}
		events = events[n:]
	}
	return with, without
}
