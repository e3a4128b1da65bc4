// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/poll"
)

var handledTxns = regexp.MustCompile(`(?m)^grpc_server_handled_total\{grpc_code="OK",grpc_method="Txn",.*\} (\d+)$`)

// txns returns how many transactions etcd has handled.
func txns(t *testing.T, url string) int {
	t.Helper()
	response, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	match := handledTxns.FindSubmatch(metrics)
	if match == nil {
		t.Fatalf("etcd does not count transactions:\n%s", metrics)
	}
	count, err := strconv.Atoi(string(match[1]))
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// TestRemoveTransactions counts the transactions that the removal of a Namespace takes:
// one if the watch caches have no content of it.
func TestRemoveTransactions(t *testing.T) {
	for _, cached := range []bool{true, false} {
		t.Run(fmt.Sprintf("cached: %t", cached), func(t *testing.T) {
			url := storagetest.StartGRPC(t)
			options := storage.NewOptions()
			options.Etcd.StorageConfig.Transport.ServerList = []string{url}
			options.Etcd.EnableWatchCache = cached
			s := server{Stores: storagetest.NewStores(t, options, storagetest.NewConfig(nil))}
			s.createNamespace(t, "empty")
			s.createNamespace(t, "full")
			s.createPod(t, "full", "pod")
			poll.Eventually(t, func() string {
				pods, err := s.Pods.List(in(t.Context(), "full"), &metainternal.ListOptions{ResourceVersion: "0"})
				if err != nil || len(pods.(*tenancy.PodList).Items) != 1 {
					return fmt.Sprintf("%v, error %v", pods, err)
				}
				return ""
			})

			before := txns(t, url)
			if _, _, err := s.Namespaces.Delete(in(t.Context(), ""), "empty", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			want := 2
			if cached {
				want = 1
			}
			if got := txns(t, url) - before; got != want {
				t.Errorf("%d transactions for an empty Namespace, want %d", got, want)
			}

			before = txns(t, url)
			_, _, err := s.Namespaces.Delete(in(t.Context(), ""), "full", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
			if !apierrors.HasStatusCause(err, v1.NamespaceNotEmptyCause) {
				t.Errorf("got %v, want the cause %s", err, v1.NamespaceNotEmptyCause)
			}
			if got := txns(t, url) - before; got != 1 {
				t.Errorf("%d transactions for a Namespace with content, want 1", got)
			}
		})
	}
}
