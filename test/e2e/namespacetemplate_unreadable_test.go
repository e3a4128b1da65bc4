// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
)

// TestUnreadableNamespaceTemplate corrupts a template, which may be for any Namespace,
// and deletes it.
func TestUnreadableNamespaceTemplate(t *testing.T) {
	t.Parallel()
	for _, cache := range []bool{true, false} {
		flag := fmt.Sprintf("--watch-cache=%t", cache)
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			url := storagetest.StartGRPC(t)
			etcd := storagetest.NewClient(t, url)
			b := harness.New(t)
			if err := b.StartServer(t.Context(), flag, "--etcd-servers="+url); err != nil {
				t.Fatal(err)
			}
			create := func(name, template string) error {
				_, err := b.Client(t).TenancyV1().Namespaces().Create(t.Context(), labelled(name, template), metav1.CreateOptions{})
				return err
			}
			createTemplate(t, b, newTemplate("t"))
			if err := create("before", "t"); err != nil {
				t.Fatal(err)
			}
			flipKeys(t, etcd, "namespacetemplates/t")
			status := wantCode(t, create("a", "other"), http.StatusInternalServerError)
			wantContains(t, status.Message, `namespace "a" cannot be created because namespace template "t" cannot be read from storage`)
			wantCode(t, create("before", "t"), http.StatusConflict)

			unsafely := api + "/namespacetemplates/t?ignoreStoreReadErrorWithClusterBreakingPotential=true"
			wantAnswer(t, b.HTTP(t).Do(t, http.MethodDelete, unsafely, nil), http.StatusOK)
			if err := create("a", "t"); err != nil {
				t.Errorf("after the delete: %v", err)
			}
		})
	}
}
