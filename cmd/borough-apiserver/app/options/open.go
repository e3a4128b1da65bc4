// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"golang.org/x/net/netutil"
	"k8s.io/apiserver/pkg/audit"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/cmd/internal/client"
	"github.com/borough-io/borough/pkg/certificates"
	"github.com/borough-io/borough/pkg/certificates/servingcert"
	"github.com/borough-io/borough/pkg/standalone"
	"github.com/borough-io/borough/pkg/storage/embedded"
)

// caWarning is how long before a CA expires a server that starts logs it. All users need
// new kubeconfigs, and a server may run for months.
const caWarning = 365 * 24 * time.Hour

// Dependencies are what Open opens and creates for a server: the parts of its
// configuration that have an effect outside of the process.
type Dependencies struct {
	lock    io.Closer        // of the data directory; nil unless standalone
	etcd    *embedded.Server // nil with --etcd-servers
	serving *genericoptions.SecureServingOptions
	rotator *servingcert.Rotator // nil without --serving-cert-secret
	pki     *standalone.PKI      // nil unless standalone
	cluster *kubeconfigs         // nil if standalone

	auditBackend audit.Backend
	auditPolicy  audit.PolicyRuleEvaluator

	watched []*client.File // the kubeconfigs of which AwaitChange reports a change
}

// Open loads the kubeconfigs of the cluster or locks the data directory, starts the
// embedded etcd, ensures that the certificates exist, opens the audit log and the port, and
// writes the kubeconfigs of the users. Only Open creates files, objects and listeners;
// Config composes them. The caller closes the dependencies after the server has ended.
func (o *Options) Open(ctx context.Context) (_ *Dependencies, err error) {
	d := &Dependencies{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if err := checkDebugSocket(o.Features.DebugSocketPath); err != nil {
		return nil, fmt.Errorf("--debug-socket-path: %w", err)
	}
	if o.Standalone {
		if d.lock, err = lockDir(o.DataDir); err != nil {
			return nil, fmt.Errorf("--data-dir: %w", err)
		}
	} else {
		if d.cluster, err = o.loadKubeconfigs(); err != nil {
			return nil, err
		}
		d.watched = d.cluster.files
	}
	if o.Storage.Embedded() {
		if d.etcd, err = embedded.Start(ctx, embedded.Config{Dir: o.inDataDir("etcd"), QuotaBytes: o.Storage.QuotaBytes, Ephemeral: o.EphemeralEtcd}); err != nil {
			return nil, fmt.Errorf("--data-dir: %w", err)
		}
	}
	// Copied, because the certificate and the listener are not options.
	serving := *o.SecureServing
	d.serving = &serving
	openCertificate := o.openClusterCertificate
	if o.Standalone {
		openCertificate = o.openStandaloneCertificate
	}
	if err := openCertificate(d); err != nil {
		return nil, err
	}
	if err := o.openAudit(d); err != nil {
		return nil, err
	}
	if err := d.openPort(); err != nil {
		return nil, fmt.Errorf("--bind-address and --secure-port: %w", err)
	}
	if o.Standalone {
		// Only after the port is open: a server that cannot listen must not overwrite
		// the kubeconfigs of the one that does.
		if err := o.writeKubeconfigs(d.pki); err != nil {
			return nil, err
		}
		if expires := d.pki.Expires(); time.Until(expires) < caWarning {
			klog.FromContext(ctx).Info("The CA expires soon. After it has expired, the server does not start, and no kubeconfig works: rotate the CA",
				"file", d.pki.CAFile(), "expires", expires)
		}
	}
	return d, nil
}

// EtcdStopped returns a channel that is closed when the embedded etcd has stopped.
// Without an embedded etcd it returns nil.
func (d *Dependencies) EtcdStopped() <-chan struct{} {
	if d.etcd == nil {
		return nil
	}
	return d.etcd.Done()
}

// CloseEtcd closes the embedded etcd under the server, as a crash does. Requests in
// flight fail.
func (d *Dependencies) CloseEtcd() error {
	if d.etcd == nil {
		return nil
	}
	return d.etcd.Close()
}

// Close closes the port and the embedded etcd, and unlocks the data directory. The
// server must have ended, because it closes its etcd clients when it does.
func (d *Dependencies) Close() error {
	var errs []error
	if d.serving != nil && d.serving.Listener != nil {
		// A server that has run has closed it.
		if err := d.serving.Listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, fmt.Errorf("close the port: %w", err))
		}
	}
	errs = append(errs, d.CloseEtcd())
	if d.lock != nil {
		if err := d.lock.Close(); err != nil {
			errs = append(errs, fmt.Errorf("unlock the data directory: %w", err))
		}
	}
	return errors.Join(errs...)
}

// checkDebugSocket returns an error if there is a file at the path that is not a socket. The
// library removes what is there, because a server that was killed leaves its socket behind.
func checkDebugSocket(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket", path)
	}
	return nil
}

// lockDir creates a directory and locks it until the result is closed. It returns an error
// if another server has locked it.
func lockDir(dir string) (io.Closer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the data directory: %w", err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("%s is in use by another process", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	return lock, nil
}

// openStandaloneCertificate ensures that the PKI exists and serves with its
// certificate, unless --tls-cert-file is set.
func (o *Options) openStandaloneCertificate(d *Dependencies) (err error) {
	if d.pki, err = standalone.EnsurePKI(o.inDataDir(PKIDir), o.servingHosts()); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	if cert := &d.serving.ServerCert.CertKey; cert.CertFile == "" && cert.KeyFile == "" {
		cert.CertFile, cert.KeyFile = d.pki.ServingCertFile(), d.pki.ServingKeyFile()
	}
	return nil
}

// openClusterCertificate ensures that there is a certificate to serve with: that in
// --serving-cert-secret, as soon as the cluster can be reached, that in
// --tls-cert-file, or a self-signed one.
func (o *Options) openClusterCertificate(d *Dependencies) (err error) {
	if o.Cluster.CertSecret == "" {
		if err := d.openSelfSigned(); err != nil {
			return fmt.Errorf("create a serving certificate: %w", err)
		}
		return nil
	}
	if d.rotator, err = o.newRotator(d.cluster.core); err != nil {
		return fmt.Errorf("--serving-cert-secret: %w", err)
	}
	d.serving.ServerCert.GeneratedCert = d.rotator
	return nil
}

// openSelfSigned ensures that there is a self-signed certificate, in memory or in --cert-dir,
// or uses that in --tls-cert-file.
func (d *Dependencies) openSelfSigned() error {
	hosts := []net.IP{net.IPv4(127, 0, 0, 1)}
	if cert := d.serving.ServerCert; cert.CertDirectory != "" {
		// The library does not start with one file of the pair, which is what remains if a server
		// is killed while it writes them.
		file := filepath.Join(cert.CertDirectory, cert.PairName)
		addresses := hosts
		if !d.serving.BindAddress.IsUnspecified() {
			addresses = append(addresses, d.serving.BindAddress)
		}
		if err := ensureSelfSigned(file+".crt", file+".key", addresses); err != nil {
			return fmt.Errorf("--cert-dir: %w", err)
		}
	}
	return d.serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, hosts)
}

// ensureSelfSigned writes a certificate for localhost and the addresses, and its key, unless
// both files exist. It renames a file without the other: it can be of the user.
func ensureSelfSigned(certFile, keyFile string, addresses []net.IP) error {
	_, certErr := os.Stat(certFile)
	_, keyErr := os.Stat(keyFile)
	if !errors.Is(certErr, fs.ErrNotExist) && !errors.Is(keyErr, fs.ErrNotExist) {
		return nil
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", addresses, nil)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(certFile), 0o755); err != nil {
		return err
	}
	for _, file := range []string{certFile, keyFile} {
		if err := os.Rename(file, file+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := certificates.WriteFile(keyFile, key, 0o600); err != nil {
		return err
	}
	return certificates.WriteFile(certFile, cert, 0o644)
}

// openAudit opens the audit log. The library does that when it configures auditing.
func (o *Options) openAudit(d *Dependencies) error {
	config := &genericapiserver.Config{}
	if err := o.EgressSelector.ApplyTo(config); err != nil {
		return fmt.Errorf("--egress-selector-config-file: %w", err)
	}
	if file := o.Audit.WebhookOptions.ConfigFile; file != "" {
		// The library sends events to the cluster that the process runs in if the file is empty.
		kubeconfig := &client.File{Flag: "audit-webhook-config-file", Path: file}
		if _, err := kubeconfig.Load(); err != nil {
			return err
		}
		d.watched = append(d.watched, kubeconfig)
	}
	if err := o.Audit.ApplyTo(config); err != nil {
		return fmt.Errorf("--audit-policy-file, --audit-log-path and --audit-webhook-config-file: %w", err)
	}
	if config.AuditBackend != nil {
		d.auditBackend = limitedAudit{config.AuditBackend}
	}
	d.auditPolicy = config.AuditPolicyRuleEvaluator
	return nil
}

// openPort listens on the port, unless the options have a listener. The options of the
// library do that when they are applied; these have nothing else to apply.
func (d *Dependencies) openPort() error {
	if d.serving.Listener != nil {
		return nil
	}
	port := genericoptions.SecureServingOptions{
		BindAddress:          d.serving.BindAddress,
		BindPort:             d.serving.BindPort,
		BindNetwork:          d.serving.BindNetwork,
		PermitPortSharing:    d.serving.PermitPortSharing,
		PermitAddressSharing: d.serving.PermitAddressSharing,
	}
	var info *genericapiserver.SecureServingInfo
	if err := port.ApplyTo(&info); err != nil {
		return err
	}
	limited, err := limitConnections(info.Listener)
	if err != nil {
		return err
	}
	d.serving.Listener = limited
	return nil
}

// reservedFiles is how many open files clients cannot use up by connections. The embedded etcd
// ends if it cannot open a file, and a server needs some for etcd and for its certificates.
const reservedFiles = 256

// limitConnections returns a listener that accepts no connection while the others leave only
// the reserved files.
func limitConnections(listener net.Listener) (net.Listener, error) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return nil, fmt.Errorf("read the limit of open files: %w", err)
	}
	limit := int(min(files.Cur, math.MaxInt32))
	if limit <= reservedFiles {
		return listener, nil
	}
	return netutil.LimitListener(listener, limit-reservedFiles), nil
}

// writeKubeconfigs writes the kubeconfigs of the admin and of the controller.
func (o *Options) writeKubeconfigs(pki *standalone.PKI) error {
	kubeconfigs := standalone.Kubeconfigs{Server: "https://" + net.JoinHostPort(o.localHost(), strconv.Itoa(o.SecureServing.BindPort))}
	if file := o.SecureServing.ServerCert.CertKey.CertFile; file != "" {
		// The file may have the key, too, which kubeconfigs must not have.
		certs, err := certutil.CertsFromFile(file)
		if err != nil {
			return fmt.Errorf("--tls-cert-file: %w", err)
		}
		if kubeconfigs.TrustedCA, err = certutil.EncodeCertificates(certs...); err != nil {
			return fmt.Errorf("--tls-cert-file: %w", err)
		}
		// The address in the kubeconfigs need not be one of the certificate.
		names := certs[0].DNSNames
		for _, ip := range certs[0].IPAddresses {
			names = append(names, ip.String())
		}
		if len(names) > 0 && certs[0].VerifyHostname(o.localHost()) != nil {
			kubeconfigs.TLSServerName = names[0]
		}
	}
	if err := kubeconfigs.Write(pki, o.inDataDir(AdminKubeconfig), o.inDataDir(ControllerKubeconfig)); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	return nil
}
