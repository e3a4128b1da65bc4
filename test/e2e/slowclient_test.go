// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// dial opens a connection to a server, which stays open until the end of the test, and returns
// it and the address of the server.
func dial(t *testing.T, config *rest.Config, protocols ...string) (connection *tls.Conn, address string) {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	tlsConfig.NextProtos = protocols
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	if connection, err = tls.Dial("tcp", server.Host, tlsConfig); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection, server.Host
}

// sendUnread sends a request on a connection of HTTP/2 with a window of 0, so that the server can
// write no body. The connection stays open until the end of the test.
func sendUnread(t *testing.T, config *rest.Config, path string) {
	t.Helper()
	connection, address := dial(t, config, http2.NextProtoTLS)
	framer := http2.NewFramer(connection, connection)
	var headers bytes.Buffer
	encoder := hpack.NewEncoder(&headers)
	for _, field := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: address}, {Name: ":path", Value: path}} {
		if err := encoder.WriteField(field); err != nil {
			t.Fatal(err)
		}
	}
	_, err := connection.Write([]byte(http2.ClientPreface))
	err = errors.Join(err, framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}),
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers.Bytes(), EndStream: true, EndHeaders: true}))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				return // the test has ended
			}
			if settings, ok := frame.(*http2.SettingsFrame); ok && !settings.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		}
	}()
}

// TestUnreadResponses takes all requests that may be in flight with those of clients that do not
// read, and stay connected. They end, and what is refused until then has no labels of its own in
// the metrics.
func TestUnreadResponses(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	const limit = 3
	if err := b.StartServer(t.Context(), "--max-requests-inflight="+strconv.Itoa(limit), "--request-timeout=10s"); err != nil {
		t.Fatal(err)
	}
	user := harness.NewHTTP(t, b.Config(t, "controller"))
	large := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "large", Annotations: map[string]string{"large": strings.Repeat("x", 10_000)}}}
	if _, err := b.Client(t).TenancyV1().Namespaces().Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for range limit {
		sendUnread(t, b.Config(t, "controller"), api+"/namespaces")
	}
	poll.Eventually(t, func() string {
		if answer := user.Do(t, "GET", api+"/namespaces", nil); answer.Code != 429 {
			return answer.String()
		}
		return ""
	})
	for _, path := range []string{"/evil", "/apis/evil/v1/evils", "/apis/evil/v2/namespaces/a/pods/p/evil", "/api/evil/pods"} {
		user.Do(t, "GET", path, nil)
	}
	poll.Eventually(t, func() string {
		if answer := user.Do(t, "GET", api+"/namespaces", nil); answer.Code != 200 {
			return answer.String()
		}
		return ""
	})
	metrics := string(wantAnswer(t, b.HTTP(t).Do(t, "GET", "/metrics", nil), 200).Body)
	if !strings.Contains(metrics, `apiserver_request_terminations_total{code="429"`) {
		t.Error("no request was refused")
	}
	for line := range strings.Lines(metrics) {
		if strings.Contains(line, "evil") {
			t.Errorf("a label of a request that was refused: %s", line)
		}
	}
}

// TestBufferedRefusals checks that what clients without rights can get is less than the 4 KiB that
// the library buffers: so they hold no request in flight if they do not read it.
func TestBufferedRefusals(t *testing.T) {
	t.Parallel()
	const buffered = 4 << 10
	user := harness.NewHTTP(t, loadKubeconfig(t, issue(t, borough, "--user=without-rights")))
	escaped := func(n int) string { return strings.Repeat("%3C", n) }
	for _, request := range []struct{ method, path string }{
		{strings.Repeat("A", 5000), "/"},
		{strings.Repeat("A", 32), "/apis/" + strings.Repeat("x", 1100) + "/v1/r"},
		{"GET", "/" + strings.Repeat("x", 1199)},
		{"GET", "/" + escaped(113)},
		{"GET", "/" + strings.Repeat("%22", 255)},
		{"GET", "/" + strings.Repeat("%01", 204)},
		{"GET", "/" + strings.Repeat("%ff", 204)},
		{"GET", "/apis/" + strings.Repeat("x", 1180) + "/v1/r"},
		{"GET", "/apis/g/v1/" + strings.Repeat("x", 1180)},
		{"GET", "/apis/" + strings.Repeat("x", 590) + "/v1/" + strings.Repeat("x", 590)},
		{"GET", "/apis/g/v1/" + escaped(132)},
		{"POST", "/apis/g/v1/" + escaped(50) + "/" + escaped(50)},
		{"GET", "/api/v1/namespaces/" + strings.Repeat("x", 253) + "/pods/" + strings.Repeat("x", 700)},
		{"GET", "/api/v1/namespaces/" + strings.Repeat("%3C", 40) + "/pods/" + escaped(60)},
		{"GET", "/readyz?verbose&exclude=" + strings.Repeat("x", 1000)},
		{"GET", "/readyz?verbose&exclude=" + strings.Repeat("x", 9000)},
		{"GET", "/readyz?verbose&exclude=" + strings.Repeat("\xff", 200)},
		{"GET", "/readyz?verbose&exclude=" + strings.Repeat("\xff", 1000)},
		{"GET", "/livez?verbose&exclude=" + strings.Repeat("%01", 330)},
		{"GET", "/healthz/" + escaped(110)},
		{"GET", "/version?pretty=true"},
		{"GET", "/version?timeout=" + strings.Repeat("\xff", 500)},
		{"GET", "/version?timeout=" + strings.Repeat("<", 500)},
		{"GET", "/version?timeout=" + strings.Repeat("<", 5000)},
		{"GET", "/api/v1/pods?limit=" + strings.Repeat("<", 500)},
		{"GET", "/api/v1/pods?limit=" + strings.Repeat("<", 5000)},
		{"GET", "/api/v1/watch?" + strings.Repeat("x", 5000)},
	} {
		for name, client := range map[string]harness.HTTP{"anonymous": anonymous(t, borough), "user": user} {
			answer := client.Do(t, request.method, request.path, nil)
			if n := len(answer.Body); n >= buffered {
				t.Errorf("%s: %.40s %.60s: %d with %d bytes", name, request.method, request.path, answer.Code, n)
			}
		}
	}
	var withoutUser []string
	for i := range 100 {
		withoutUser = append(withoutUser, fmt.Sprintf("Impersonate-Extra-%d", i), strings.Repeat("\xff", 100))
	}
	if answer := anonymous(t, borough).Do(t, "GET", "/api/v1/pods", nil, withoutUser...); answer.Code != 400 || len(answer.Body) >= buffered {
		t.Errorf("impersonation without a user: %d with %d bytes", answer.Code, len(answer.Body))
	}
	for _, text := range []string{strings.Repeat("x", 1200), strings.Repeat("\xff", 109), strings.Repeat("\xff", 20_000), strings.Repeat("<", 20_000)} {
		for _, header := range [][]string{
			{"Impersonate-User", text}, {"Impersonate-Group", text, "Impersonate-User", "u"}, {"Impersonate-Uid", text, "Impersonate-User", "u"},
			{"Impersonate-Extra-Scope", text, "Impersonate-User", "u"}, {"Impersonate-Extra-" + strings.Repeat("x", min(len(text), 3000)), "v", "Impersonate-User", "u"},
		} {
			for name, client := range map[string]harness.HTTP{"anonymous": anonymous(t, borough), "user": user} {
				answer := client.Do(t, "GET", "/api/v1/pods", nil, header...)
				if n := len(answer.Body); n >= buffered {
					t.Errorf("%s: %.30s: %.30q: %d with %d bytes", name, header[0], header[1], answer.Code, n)
				}
			}
		}
	}
}

// TestUnreadWatch opens a watch that is not read, on a connection that stays open. It ends.
func TestUnreadWatch(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context(), "--request-timeout=10s"); err != nil {
		t.Fatal(err)
	}
	// With its objects, such as those of the policy at the start, it is more than the library buffers.
	sendUnread(t, b.Config(t, "admin"), "/apis/rbac.authorization.k8s.io/v1/clusterroles?watch=true&timeoutSeconds=10")
	const watches = `group="rbac.authorization.k8s.io",resource="clusterroles",scope="cluster"`
	wantWatches(t, b, watches, "1")
	wantWatches(t, b, watches, "0")
}

// wantWatches waits until a server has as many watches with the labels.
func wantWatches(t *testing.T, b *harness.Borough, labels, want string) {
	t.Helper()
	metric := `apiserver_longrunning_requests{component="apiserver",` + labels + `,subresource="",verb="WATCH",version="v1"} `
	poll.Eventually(t, func() string {
		metrics := string(wantAnswer(t, b.HTTP(t).Do(t, "GET", "/metrics", nil), 200).Body)
		if _, value, _ := strings.Cut(metrics, metric); !strings.HasPrefix(value, want+"\n") {
			return "watches with " + labels + ": " + value[:min(len(value), 2)]
		}
		return ""
	})
}

// TestWebSocketWatch opens watches over WebSockets. One whose client does not read, and one whose
// client sends a message of 32 MiB without its end, are closed.
func TestWebSocketWatch(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context(), "--request-timeout=10s"); err != nil {
		t.Fatal(err)
	}
	ns := newNamespace(t, b)
	pod := createPod(t, b, ns, newPod("p"))
	path := api + "/namespaces/" + ns + "/pods"
	const watches = `group="tenancy.borough.io",resource="pods",scope="namespace"`

	unread := openWebSocket(t, b, path+"?watch=true&timeoutSeconds=10")
	wantWatches(t, b, watches, "1")
	// More than what the connection buffers.
	for i := range 50 {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"large":"%d%s"}}}`, i, strings.Repeat("x", 250_000))
		if _, err := b.Client(t).TenancyV1().Pods(ns).Patch(t.Context(), pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	wantWatches(t, b, watches, "0")
	_ = unread.Close() // the server has closed it

	sender := openWebSocket(t, b, path+"?watch=true&timeoutSeconds=2147483647&labelSelector=none")
	wantWatches(t, b, watches, "1")
	header := make([]byte, 14) // of a binary message, masked
	header[0], header[1] = 0x82, 0xff
	binary.BigEndian.PutUint64(header[2:], 32<<20)
	_, err := sender.Write(header)
	for sent := 0; err == nil && sent < 31<<20; {
		var n int
		n, err = sender.Write(make([]byte, 1<<20))
		sent += n
	}
	if err == nil {
		t.Error("the server has received a message of 31 MiB")
	}
	wantWatches(t, b, watches, "0")
}

// openWebSocket opens a watch over a WebSocket, of which only the response is read.
func openWebSocket(t *testing.T, b *harness.Borough, path string) *tls.Conn {
	t.Helper()
	connection, address := dial(t, b.Config(t, "admin"))
	_, err := fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %[2]s\r\nOrigin: https://%[2]s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", path, address)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %s", response.Status)
	}
	return connection
}
