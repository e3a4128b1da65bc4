// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/test/certs"
	"github.com/borough-io/borough/test/poll"
)

// podServer is an HTTPS server with the Pods of nodes, for clients with a token.
type podServer struct {
	*httptest.Server
	ca *certs.Authority

	mu      sync.Mutex
	token   string
	handler http.HandlerFunc
}

func newPodServer(t *testing.T) *podServer {
	t.Helper()
	s := &podServer{ca: certs.NewAuthority(t)}
	s.Server = httptest.NewUnstartedServer(s)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{s.ca.Server(t, time.Now().Add(time.Hour))}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *podServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.Header.Get("Authorization") != "Bearer "+s.token {
		http.Error(w, "wrong token", http.StatusUnauthorized)
		return
	}
	s.handler(w, req)
}

// set sets the token and the handler of the requests to come.
func (s *podServer) set(token string, handler http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token, s.handler = token, handler
}

func serveText(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

// TestSourceURL runs the program for two nodes with one URL, whose server fails at times.
func TestSourceURL(t *testing.T) {
	t.Parallel()
	server := newPodServer(t)
	server.set("first", serveText(manifest("web", "nginx")+"---\n"+manifest("db", "postgres")))
	tokenFile := inFile(t, "first")
	program := newSourceProcess(t, borough)
	var sources []source.Identity
	for _, node := range []string{"n1", "n2"} {
		identity, err := source.Parse(server.URL+"/pods?key=secret", node)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, identity)
		program.start(t, "--from="+identity.Location, "--node="+node, "--url-ca-file="+server.ca.File,
			"--url-token-file="+tokenFile, "--url-interval=1s",
			"--url-timeout=2m") // a request that times out would be another failure
	}
	first, second := sources[0], sources[1]
	if first.Namespace() == second.Namespace() {
		t.Fatalf("both nodes have the Namespace %s", first.Namespace())
	}

	eventually := func(problem string, names ...string) (pods []v1.Pod) {
		t.Helper()
		for _, identity := range sources {
			pods = append(pods, awaitSource(t, identity, problem, names...)...)
		}
		return pods
	}
	before := eventually("", "db", "web")
	uids := map[string]string{}
	for _, pod := range before {
		uid := pod.Annotations[source.UIDAnnotation]
		if uids[uid] != "" || uid == "" {
			t.Errorf("the Pods %s and %s have the source UID %q", pod.Name, uids[uid], uid)
		}
		uids[uid] = pod.Name
	}

	// An error page, which stays the same for many requests.
	server.set("first", func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		serveText("<html>Bad gateway</html>")(w, req)
	})
	eventually("the server answers with 502 Bad Gateway", "db", "web")
	server.set("first", serveText("<html>Maintenance</html>"))
	eventually(`which has the type "text/html"`, "db", "web")
	server.set("second", serveText(manifest("web", "nginx:2")))
	eventually("the server answers with 401 Unauthorized", "db", "web")
	replaceFile(t, tokenFile, "second")
	eventually("", "web")
	// The Pods that remain are the same ones, updated.
	poll.Eventually(t, func() string {
		for _, pod := range eventually("", "web") {
			i := slices.IndexFunc(before, func(old v1.Pod) bool { return old.Namespace == pod.Namespace && old.Name == pod.Name })
			if i < 0 || before[i].UID != pod.UID || pod.Spec.Containers[0].Image != "nginx:2" {
				return fmt.Sprintf("%s/%s has the UID %s and the image %s after the failures", pod.Namespace, pod.Name, pod.UID, pod.Spec.Containers[0].Image)
			}
		}
		return ""
	})
	wantEventsOfSource(t, first, 3)
}

// sourceTimeout is more than the longest time between two requests, which doubles with each
// failure, up to six minutes.
const sourceTimeout = 7 * time.Minute

// awaitSource waits until the source of a URL has the Pods, and a problem, or none if it is "".
func awaitSource(t *testing.T, identity source.Identity, problem string, names ...string) []v1.Pod {
	t.Helper()
	client := borough.Client(t).TenancyV1()
	var want []string
	for _, name := range names {
		want = append(want, name+"-"+identity.Node)
	}
	var pods *v1.PodList
	err := poll.Until(t.Context(), sourceTimeout, func(context.Context) error {
		namespace, err := client.Namespaces().Get(t.Context(), identity.Namespace(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		var status source.Status
		text := namespace.Annotations[identity.StatusAnnotation()]
		if err := json.Unmarshal([]byte(text), &status); err != nil {
			return fmt.Errorf("the annotation is %s", text)
		}
		if strings.Contains(text, "secret") {
			t.Fatalf("the annotation has the query of the URL: %s", text)
		}
		if problem == "" && len(status.Problems) > 0 || problem != "" && (len(status.Problems) != 1 || !strings.Contains(status.Problems[0].Message, problem)) {
			return fmt.Errorf("want the problem %q, got %+v", problem, status.Problems)
		}
		if pods, err = client.Pods(identity.Namespace()).List(t.Context(), metav1.ListOptions{}); err != nil {
			return err
		}
		var got []string
		for _, pod := range pods.Items {
			got = append(got, pod.Name)
			if pod.Spec.NodeName != identity.Node || pod.Annotations[source.KindAnnotation] != "http" {
				return fmt.Errorf("%s is of the node %s, and %v", pod.Name, pod.Spec.NodeName, pod.Annotations)
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("got the Pods %q, want %q", got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// wantEventsOfSource checks how many Events there are: one for each failure, however many
// requests failed.
func wantEventsOfSource(t *testing.T, identity source.Identity, count int) {
	t.Helper()
	client, err := kubernetes.NewForConfig(borough.Config(t, "admin"))
	if err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string { // they are written in the background
		events, err := client.EventsV1().Events(identity.Namespace()).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		var notes []string
		for _, event := range events.Items {
			notes = append(notes, event.Reason+": "+event.Note)
		}
		if len(notes) != count {
			return fmt.Sprintf("got %d Events, want %d: %q", len(notes), count, notes)
		}
		return ""
	})
}
