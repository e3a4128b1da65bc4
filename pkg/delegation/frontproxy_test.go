// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/borough-io/borough/pkg/authfailure"
	"github.com/borough-io/borough/test/poll"
)

// changingCA is a CA that a test can change. It counts what is verified with it.
type changingCA struct {
	dynamiccertificates.CAContentProvider
	verifications int
}

func (c *changingCA) VerifyOptions() (x509.VerifyOptions, bool) {
	c.verifications++
	return c.CAContentProvider.VerifyOptions()
}

func (c *changingCA) set(t *testing.T, bundle string) {
	t.Helper()
	content, err := dynamiccertificates.NewStaticCAContent("front-proxy", []byte(bundle))
	if err != nil {
		t.Fatal(err)
	}
	c.CAContentProvider = content
}

// A certificate is verified once, but its users and what is trusted can differ in each
// request.
func TestFrontProxy(t *testing.T) {
	bundle, proxy := newCA(t, "front-proxy")
	otherBundle, other := newCA(t, "front-proxy")
	var (
		ca    changingCA
		names = []string{"front-proxy"}
	)
	ca.set(t, bundle)
	none := headerrequest.StaticStringSlice{}
	authn := newFrontProxy(&authenticatorfactory.RequestHeaderConfig{
		CAContentProvider: &ca, UsernameHeaders: headerrequest.StaticStringSlice{"X-Remote-User"},
		UIDHeaders: none, GroupHeaders: headerrequest.StaticStringSlice{"X-Remote-Group"}, ExtraHeaderPrefixes: none,
		AllowedClientNames: headerrequest.StringSliceProviderFunc(func() []string { return names }),
	})
	check := func(step string, cert *x509.Certificate, user, want string) {
		t.Helper()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		req.TLS = &tls.ConnectionState{}
		if cert != nil {
			req.TLS.PeerCertificates = []*x509.Certificate{cert}
		}
		req.Header.Set("X-Remote-User", user)
		req.Header.Set("X-Remote-Group", user+"s")
		response, ok, _ := authn.AuthenticateRequest(req)
		switch {
		case !ok && want != "":
			t.Errorf("%s: the request is not authenticated", step)
		case ok && (response.User.GetName() != want || response.User.GetGroups()[0] != want+"s"):
			t.Errorf("%s: the user is %v, not %q", step, response.User, want)
		}
	}
	check("no certificate", nil, "alice", "")
	check("a certificate of another CA", other, "alice", "")
	check("the first request", proxy, "alice", "alice")
	verifications := ca.verifications
	check("another user", proxy, "bob", "bob")
	if ca.verifications > verifications {
		t.Error("the certificate was verified again")
	}
	check("no user", proxy, "", "")
	check("no certificate, after one that was verified", nil, "alice", "")
	names = []string{"someone-else"}
	check("a name that is not allowed any more", proxy, "alice", "")
	names = nil
	check("all names are allowed", proxy, "alice", "alice")
	ca.set(t, otherBundle)
	check("a CA that is not trusted any more", proxy, "alice", "")
	check("the new CA", other, "alice", "alice")
}

// Requests of anonymous users do not close the connection of kube-apiserver, which all users
// share, but that of a client of its own.
func TestConnectionOfFrontProxy(t *testing.T) {
	bundle, proxy := newCA(t, "front-proxy")
	var ca changingCA
	ca.set(t, bundle)
	none := headerrequest.StaticStringSlice{}
	authn := union.New(newFrontProxy(&authenticatorfactory.RequestHeaderConfig{
		CAContentProvider: &ca, UsernameHeaders: headerrequest.StaticStringSlice{"X-Remote-User"},
		UIDHeaders: none, GroupHeaders: headerrequest.StaticStringSlice{"X-Remote-Group"}, ExtraHeaderPrefixes: none,
		AllowedClientNames: none,
	}), anonymous.NewAuthenticator(nil))
	denied := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	chain := authfailure.WithErrors(filters.WithAuthentication(denied, authn, nil, nil, nil), nil)
	var certificates []*x509.Certificate
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.TLS.PeerCertificates = certificates
		chain.ServeHTTP(w, req)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)

	// send reports whether the request used the connection of the last one.
	send := func() (reused bool) {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Remote-User", user.Anonymous)
		req.Header.Set("X-Remote-Group", user.AllUnauthenticated)
		response, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusForbidden || response.ProtoMajor != 2 {
			t.Fatalf("got %s %s", response.Proto, response.Status)
		}
		return reused
	}
	certificates = []*x509.Certificate{proxy}
	send()
	if !send() {
		t.Error("the connection of kube-apiserver was closed")
	}
	certificates = nil
	send() // closes the connection, which the client may learn later
	poll.Eventually(t, func() string {
		if send() {
			return "the connection of an anonymous client was kept"
		}
		return ""
	})
}
