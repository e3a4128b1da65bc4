// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// newFlowSchema gives a user a separate priority level in the cluster, without a
// queue. It returns the FlowSchema.
func newFlowSchema(t *testing.T, user string, shares int32) *flowcontrolv1.FlowSchema {
	t.Helper()
	client := cluster.Client(t).FlowcontrolV1()
	meta := metav1.ObjectMeta{Name: user}
	_, err := client.PriorityLevelConfigurations().Create(t.Context(), &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: meta,
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: &shares,
				LendablePercent:          new(int32(0)),
				BorrowingLimitPercent:    new(int32(0)),
				LimitResponse:            flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	flow, err := client.FlowSchemas().Create(t.Context(), &flowcontrolv1.FlowSchema{
		ObjectMeta: meta,
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: meta.Name},
			MatchingPrecedence:         100,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: user}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					APIGroups: []string{v1.GroupName}, Resources: []string{"*"}, Verbs: []string{"*"}, Namespaces: []string{"*"}, ClusterScope: true,
				}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{
			client.FlowSchemas().Delete(context.Background(), meta.Name, metav1.DeleteOptions{}),
			client.PriorityLevelConfigurations().Delete(context.Background(), meta.Name, metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Errorf("delete a priority level: %v", err)
			}
		}
	})
	return flow
}

// TestFlowControl fills a user's priority level with requests that don't end,
// until our server rejects one more. It still accepts those of others. The
// requests go directly to our server, because kube-apiserver would reject them
// first.
func TestFlowControl(t *testing.T) {
	t.Parallel()
	user, other := newName("flood"), newName("drizzle")
	team := newName("team")
	namespace, _ := newTeamNamespaces(t, team)
	flow := newFlowSchema(t, user, 1)
	for _, name := range []string{other, user} { // once a user has the rights, the one before has them too
		grant(t, "", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: name},
			rbacv1.PolicyRule{APIGroups: []string{v1.GroupName}, Resources: []string{"pods"}, Verbs: []string{"create", "get", "list"}})
	}
	arrived, release := make(chan struct{}), make(chan struct{})
	releaseAll := sync.OnceFunc(func() { close(release) })
	t.Cleanup(releaseAll)
	slow := newWebhook(t, func(ctx context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if request.UserInfo.Username == user {
			select {
			case arrived <- struct{}{}:
				<-release
			case <-ctx.Done():
			}
		}
		return denyMarked(ctx, request)
	})
	registerValidating(t, slow, team, []string{"pods"})
	awaitDenied(t, cluster.BoroughClient(t), namespace)

	path := "/apis/tenancy.borough.io/v1/namespaces/" + namespace + "/pods"
	as := func(name string) (viaAggregator, direct harness.HTTP) {
		t.Helper()
		config, err := cluster.UserConfig(name)
		if err != nil {
			t.Fatal(err)
		}
		return harness.NewHTTP(t, config), newDirect(t, config)
	}
	viaAggregator, flood := as(user)
	_, drizzle := as(other)
	// Wait until the server knows the rights and the FlowSchema.
	const schemaHeader, levelHeader = flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID, flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID
	var level string
	poll.Eventually(t, func() string {
		answer := flood.Do(t, http.MethodGet, path, nil)
		if level = answer.Header.Get(levelHeader); answer.Code != http.StatusOK || answer.Header.Get(schemaHeader) != string(flow.UID) {
			return fmt.Sprintf("got %v with the FlowSchema %q, want %q", answer, answer.Header.Get(schemaHeader), flow.UID)
		}
		return ""
	})

	create := func(client harness.HTTP, name string) harness.Answer {
		pod := strings.Replace(fmt.Sprintf(podManifest, "example.com/web:1"), "name: web", "name: "+name, 1)
		return client.Do(t, http.MethodPost, path, []byte(pod), "Content-Type", "application/yaml")
	}
	answers := make(chan harness.Answer)
	var held int
	var rejected harness.Answer
	for rejected.Code == 0 {
		name := fmt.Sprintf("flood-%d", held)
		go func() {
			answer := harness.Answer{Code: -1} // if there was no response
			defer func() { answers <- answer }()
			answer = create(flood, name)
		}()
		select {
		case <-arrived:
			held++ // and keeps its seat
		case rejected = <-answers:
		}
	}
	if rejected.Code != http.StatusTooManyRequests || rejected.Header.Get("Retry-After") == "" || rejected.Header.Get(levelHeader) != level || held == 0 {
		t.Errorf("after %d requests that don't end: got %v, want 429", held, rejected)
	}
	t.Logf("%d concurrent requests, then %s", held, rejected)
	if answer := create(drizzle, "drizzle"); answer.Code != http.StatusCreated || answer.Header.Get(levelHeader) == level {
		t.Errorf("another user: got %v, want 201 at another priority level", answer)
	}
	releaseAll()
	for range held {
		if answer := <-answers; answer.Code != http.StatusCreated {
			t.Errorf("a request that was released: got %v, want 201", answer)
		}
	}

	// Requests through kube-apiserver also count in the user's priority level.
	metric := fmt.Sprintf("apiserver_flowcontrol_dispatched_requests_total{flow_schema=%q,priority_level=%q} ", user, user)
	before := readMetric(t, metric)
	if answer := viaAggregator.Do(t, http.MethodGet, path, nil); answer.Code != http.StatusOK {
		t.Fatalf("through kube-apiserver: got %v", answer)
	}
	if after := readMetric(t, metric); after != before+1 {
		t.Errorf("%s: %d before a request through kube-apiserver, %d after it", metric, before, after)
	}
}

// TestListSeats lists Pods whose size is that of ten seats, which is the maximum of
// a list, as lists and as Tables.
func TestListSeats(t *testing.T) {
	t.Parallel()
	user := newName("lister")
	namespace, _ := newTeamNamespaces(t, newName("team"))
	grant(t, "", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: user},
		rbacv1.PolicyRule{APIGroups: []string{v1.GroupName}, Resources: []string{"pods", "limitranges"}, Verbs: []string{"list"}})
	newFlowSchema(t, user, 100) // more than the maximum
	for i := range 10 {
		newPod(t, namespace, fmt.Sprintf("large-%d", i), func(pod *v1.Pod) {
			pod.Annotations = map[string]string{"example.com/large": strings.Repeat("x", 100_000)}
		})
	}
	config, err := cluster.UserConfig(user)
	if err != nil {
		t.Fatal(err)
	}
	lister := newDirect(t, config)
	metric := fmt.Sprintf("apiserver_flowcontrol_work_estimated_seats_sum{flow_schema=%q,priority_level=%q} ", user, user)
	seats := func(resource, accept string) int {
		before := readMetric(t, metric)
		if answer := lister.Do(t, http.MethodGet, "/apis/tenancy.borough.io/v1/"+resource, nil, "Accept", accept); answer.Code != http.StatusOK {
			t.Logf("list %s: %v", resource, answer)
			return 0
		}
		return readMetric(t, metric) - before
	}
	for _, accept := range []string{"application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
		// The server counts the objects periodically.
		poll.Eventually(t, func() string {
			if n := seats("pods", accept); n != 10 {
				return fmt.Sprintf("a list of Pods as %s takes %d seats, want 10", accept, n)
			}
			return ""
		})
		if n := seats("limitranges", accept); n >= 10 {
			t.Errorf("a list of few LimitRanges takes %d seats", n)
		}
	}
}

// newDirect returns an HTTP client that bypasses kube-apiserver and connects to
// our server.
func newDirect(t *testing.T, config *rest.Config) harness.HTTP {
	t.Helper()
	return harness.NewHTTP(t, borough.Servers[0].Direct(config))
}

// readMetric returns the value of a metric of our server, or 0 if it is
// missing.
func readMetric(t *testing.T, metric string) int {
	t.Helper()
	answer := newDirect(t, cluster.AdminConfig()).Do(t, http.MethodGet, "/metrics", nil)
	for line := range strings.Lines(string(answer.Body)) {
		if value, ok := strings.CutPrefix(line, metric); ok {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return n
		}
	}
	return 0
}
