// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"crypto/x509"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// fakeCA is a CA that is not loaded while pem is empty.
type fakeCA struct {
	pem string
	ran bool
}

func (*fakeCA) Name() string                              { return "fake" }
func (c *fakeCA) CurrentCABundleContent() []byte          { return []byte(c.pem) }
func (*fakeCA) VerifyOptions() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, true }
func (*fakeCA) AddListener(dynamiccertificates.Listener)  {}
func (c *fakeCA) RunOnce(context.Context) error           { c.ran = true; return nil }
func (*fakeCA) Run(context.Context, int)                  {}

func TestFrontProxy(t *testing.T) {
	client, frontProxy := &fakeCA{pem: "client CA"}, &fakeCA{}
	generic := genericapiserver.NewRecommendedConfig(New().codecs)
	generic.SecureServing = &genericapiserver.SecureServingInfo{ClientCA: client}
	generic.Authentication.RequestHeaderConfig = &authenticatorfactory.RequestHeaderConfig{CAContentProvider: frontProxy}
	before := len(generic.ReadyzChecks)
	applyFrontProxy(generic)

	if named := generic.SecureServing.ClientCA.CurrentCABundleContent(); len(named) > 0 {
		t.Errorf("the handshake names the CA %q", named)
	}
	runner, ok := generic.SecureServing.ClientCA.(dynamiccertificates.ControllerRunner)
	if !ok {
		t.Fatal("the CA cannot be reloaded")
	}
	if err := runner.RunOnce(t.Context()); err != nil || !client.ran {
		t.Errorf("the CA is not loaded: %v", err)
	}
	checks := generic.ReadyzChecks[before:]
	if len(checks) != 1 {
		t.Fatalf("got %d checks, want 1", len(checks))
	}
	if err := checks[0].Check(nil); err == nil {
		t.Error("ready without the CA of the front proxy")
	}
	frontProxy.pem = "front proxy CA"
	if err := checks[0].Check(nil); err != nil {
		t.Errorf("not ready with the CA of the front proxy: %v", err)
	}
}
