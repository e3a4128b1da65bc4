// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"math/big"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/test/certs"
	"github.com/borough-io/borough/test/harness"
)

var (
	seed   = flag.Uint64("seed", mathrand.Uint64(), "the seed of the random choices")
	every  = flag.Int("every", 25, "send one of so many similar requests")
	only   = flag.String("only", "", "the class of the requests to send; empty is all")
	number = flag.Int("random", 250, "the number of random requests")
	bound  = flag.Bool("cpu", false, "bound the CPU time of a request as well")
)

func TestMain(m *testing.M) {
	harness.Main(m, func(m *testing.M) (int, error) { return m.Run(), nil })
}

// TestEveryKind checks that the requests have objects of every namespaced kind.
func TestEveryKind(t *testing.T) {
	p := paths{"attacked"}
	for _, kind := range tenancy.NamespacedKinds() {
		if !slices.ContainsFunc(p.bases(), func(b base) bool {
			return b.method == http.MethodPost && b.path == p.in()+"/"+kind.Resource+dryRun
		}) {
			t.Errorf("paths.bases has no POST of a %s", kind.Kind)
		}
	}
}

// TestAttack attacks a standalone server with its controller.
func TestAttack(t *testing.T) {
	if harness.RaceEnabled {
		t.Skip("it bounds the memory that requests allocate, and the race detector empties pools at random")
	}
	b := harness.New(t)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin := b.Config(t, "admin")
	Test(t, b.Server, Options{
		Server:    Server{URL: admin.Host, Client: client(t, admin)},
		Roles:     roles(t, b),
		Namespace: "attacked",
		Seed:      *seed,
		Only:      *only,
		Every:     *every,
		Random:    *number,
		CPU:       *bound,
	})
}

// roles returns the users of a standalone server: the two that it issues
// certificates to, and several kinds that it must not authenticate.
func roles(t *testing.T, b *harness.Borough) []Role {
	admin := b.Config(t, "admin")
	old := rest.CopyConfig(admin)
	old.NextProtos = []string{"http/1.1"}
	foreign := rest.CopyConfig(admin)
	foreign.CertData, foreign.KeyData = certificate(t, nil, time.Now().Add(time.Hour))
	expired := rest.CopyConfig(admin)
	ca, err := tls.LoadX509KeyPair(filepath.Join(b.Dir, "pki", "ca.crt"), filepath.Join(b.Dir, "pki", "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	expired.CertData, expired.KeyData = certificate(t, &ca, time.Now().Add(-time.Minute))
	anonymous := rest.AnonymousClientConfig(admin)
	token := rest.CopyConfig(anonymous)
	token.BearerToken = "guessed"
	const few = 10
	return []Role{
		{Name: "admin", Host: admin.Host, Client: client(t, admin)},
		{Name: "admin with HTTP/1.1", Host: admin.Host, Client: client(t, old), Every: few},
		{Name: "controller", Host: admin.Host, Client: client(t, b.Config(t, "controller")), ReadOnly: true, Writes: []string{"namespaces/status", "namespaces/finalize", "namespaces/namespacepurges"}, Every: few},
		{Name: "anonymous", Host: admin.Host, Client: client(t, anonymous), Unauthenticated: true, Every: few},
		{Name: "certificate of another CA", Host: admin.Host, Client: client(t, foreign), Unauthenticated: true, Every: few},
		{Name: "certificate that has expired", Host: admin.Host, Client: client(t, expired), Unauthenticated: true, Every: few},
		{Name: "token", Host: admin.Host, Client: client(t, token), Unauthenticated: true, Every: few},
	}
}

func client(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	client, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// certificate makes a certificate of the admin, signed by the CA, or self-signed if
// ca is nil.
func certificate(t *testing.T, ca *tls.Certificate, until time.Time) (certPEM, keyPEM []byte) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "borough-admin", Organization: []string{"system:masters"}},
		NotBefore: until.Add(-2 * time.Hour), NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	var parent *x509.Certificate
	var signer crypto.PrivateKey
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	cert, key := certs.Sign(t, template, parent, signer)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// TestSlots checks that the generators reach and change every place of a Pod.
func TestSlots(t *testing.T) {
	before := richPod("p")
	text := asBytes(before)
	places := slots(before)
	if len(places) < 200 {
		t.Errorf("a Pod has %d places", len(places))
	}
	for _, at := range places {
		if after := asBytes(at.replace(before, "another")); bytes.Equal(after, text) {
			t.Errorf("nothing changes at %s", at)
		}
	}
	if !bytes.Equal(asBytes(before), text) {
		t.Error("the original has changed")
	}
}

// TestSeed checks that a seed repeats the requests.
func TestSeed(t *testing.T) {
	a, b := NewRandom("n", 1), NewRandom("n", 1)
	for i := range 200 {
		if x, y := a.Request(i), b.Request(i); x.String() != y.String() || !bytes.Equal(x.Body, y.Body) {
			t.Fatalf("request %d differs: %s and %s", i, x, y)
		}
	}
}

// TestJudge checks that the judge reports what is wrong.
func TestJudge(t *testing.T) {
	r := &run{Options: Options{CPU: true}, bounds: bounds{line{100, 1}, line{100, 1}, line{100, 1}}}
	role := Role{Name: "other"}
	request := Request{Method: http.MethodPost, Path: "/", Body: make([]byte, 95)}
	for _, test := range []struct {
		name  string
		cost  Counters
		size  int
		above bool
	}{
		{"nothing", Counters{}, 0, false},
		{"exactly the bound", Counters{Bytes: 200, Objects: 200, CPU: 200}, 1000, false},
		{"bytes", Counters{Bytes: 201}, 0, true},
		{"objects", Counters{Objects: 201}, 0, true},
		{"CPU", Counters{CPU: 201}, 0, true},
		{"log", Counters{Log: 1 << 20}, 0, true},
		{"answer", Counters{}, 2 << 20, true},
	} {
		share, above := r.judgeCost(role, request, answer{size: test.size}, test.cost)
		if (above != "") != test.above || (share > 1) != test.above {
			t.Errorf("%s: got %.2f, %q", test.name, share, above)
		}
	}
	for _, test := range []struct {
		role  Role
		a     answer
		fault bool
	}{
		{role, answer{code: 201}, false},
		{role, answer{code: 422}, false},
		{role, answer{code: 500}, true},
		{role, answer{err: os.ErrClosed}, true},
		{Role{Unauthenticated: true}, answer{code: 401}, false},
		{Role{Unauthenticated: true}, answer{code: 200}, true},
		{Role{ReadOnly: true}, answer{code: 403}, false},
		{Role{ReadOnly: true}, answer{code: 201}, true},
		{Role{ReadOnly: true, Writes: []string{"namespaces/status"}}, answer{code: 201}, true},
	} {
		if fault := judgeAnswer(test.role, request, test.a); (fault != "") != test.fault {
			t.Errorf("%+v, %+v: got %q", test.role, test.a, fault)
		}
	}
	before, worse := health{live: Counters{Heap: 1, Goroutines: 10}}, health{live: Counters{Heap: 1 << 30, Goroutines: 1000}, probe: Counters{Bytes: 1 << 30, Objects: 1 << 30}}
	if faults := r.worse(before, before); len(faults) > 0 {
		t.Errorf("an unchanged server: got %v", faults)
	}
	if faults := r.worse(before, worse); len(faults) != 4 {
		t.Errorf("a server that is worse in four ways: got %v", faults)
	}
}
