// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/authentication/user"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/borough-io/borough/cmd/borough-apiserver/app/options"
	"github.com/borough-io/borough/cmd/internal/command"
	"github.com/borough-io/borough/pkg/certificates"
	"github.com/borough-io/borough/pkg/standalone"
)

// kubeconfigOptions are the flags of borough-apiserver kubeconfig.
type kubeconfigOptions struct {
	dataDir            string
	user               string
	groups             []string
	expires            time.Duration
	server             string
	output             string
	allowSystemMasters bool
}

// newKubeconfigCommand returns the command that gives a user of a standalone server
// a certificate.
func newKubeconfigCommand() *cobra.Command {
	o := kubeconfigOptions{dataDir: options.DefaultDataDir, expires: 30 * 24 * time.Hour}
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Write a kubeconfig for a user of a standalone server",
		Long: `borough-apiserver kubeconfig creates a client certificate, signed by the CA of a
standalone server, and writes a kubeconfig with it. It only reads files of
--data-dir, so the server may be running.

The certificate gives the user a name and groups, and no rights. It cannot be
revoked before it expires.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			kubeconfig, err := o.issue(time.Now())
			if err != nil {
				return err
			}
			if o.output == "" {
				_, err = cmd.OutOrStdout().Write(kubeconfig)
				return err
			}
			// The new file would replace a device or a link.
			if info, err := os.Lstat(o.output); err == nil && !info.Mode().IsRegular() {
				return fmt.Errorf("--output: %s is not a regular file; without --output, the kubeconfig is written to the standard output", o.output)
			}
			if err := certificates.WriteFile(o.output, kubeconfig, 0o600); err != nil {
				return fmt.Errorf("--output: %w", err)
			}
			return nil
		},
	}

	var sets cliflag.NamedFlagSets
	o.addFlags(sets.FlagSet("kubeconfig"))
	command.AddSections(cmd, sets)
	return cmd
}

func (o *kubeconfigOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.dataDir, "data-dir", o.dataDir, "Directory for the files of the server.")
	fs.StringVar(&o.user, "user", o.user, "Name of the user.")
	fs.StringArrayVar(&o.groups, "group", o.groups, "Group of the user. Repeat the flag for several groups.")
	fs.DurationVar(&o.expires, "expires", o.expires, "Validity of the certificate. It cannot be longer than that of the CA.")
	fs.StringVar(&o.server, "server", o.server, "URL by which the user reaches the server. Defaults to that in admin.kubeconfig of --data-dir.")
	fs.StringVarP(&o.output, "output", "o", o.output, "File to write, readable only by its owner. If empty, the kubeconfig is written to the standard output.")
	fs.BoolVar(&o.allowSystemMasters, "allow-system-masters", o.allowSystemMasters, ""+
		"Allow --group="+user.SystemPrivilegedGroup+". Members of this group have all rights, which cannot be revoked.")
}

func (o *kubeconfigOptions) validate() error {
	switch {
	case o.user == "":
		return errors.New("--user must not be empty")
	case !utf8.ValidString(o.user):
		return fmt.Errorf("--user must be UTF-8, not %q", o.user)
	case o.dataDir == "":
		return errors.New("--data-dir must not be empty")
	case o.expires <= 0:
		return fmt.Errorf("--expires must be positive, not %s", o.expires)
	case !o.allowSystemMasters && slices.Contains(o.groups, user.SystemPrivilegedGroup):
		return fmt.Errorf("--group=%s gives all rights, which cannot be revoked before the certificate expires; to allow that, add --allow-system-masters", user.SystemPrivilegedGroup)
	}
	for _, group := range o.groups {
		if group == "" || !utf8.ValidString(group) {
			return fmt.Errorf("--group must be UTF-8 and not empty, not %q", group)
		}
	}
	if o.server != "" {
		if parsed, err := url.Parse(o.server); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
			return fmt.Errorf("--server must be a URL such as https://borough.example:6443, not %q", o.server)
		}
	}
	return nil
}

// issue returns the content of a kubeconfig with a new certificate.
func (o *kubeconfigOptions) issue(now time.Time) ([]byte, error) {
	ca, err := standalone.ReadCA(filepath.Join(o.dataDir, options.PKIDir), now)
	if err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	cluster, err := standalone.ReadCluster(filepath.Join(o.dataDir, options.AdminKubeconfig))
	if err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	if o.server != "" {
		cluster.Server, cluster.TLSServerName = o.server, ""
	}
	notAfter := now.Add(o.expires)
	if notAfter.After(ca.Cert.NotAfter) {
		return nil, fmt.Errorf("--expires: the CA expires at %s, so the certificate can be valid for at most %s", ca.Cert.NotAfter.Format(time.RFC3339), ca.Cert.NotAfter.Sub(now).Truncate(time.Second))
	}
	pair, err := ca.Issue(certificates.Client(pkix.Name{CommonName: o.user, Organization: o.groups}), now, notAfter)
	if err != nil {
		return nil, err
	}
	return standalone.Kubeconfig(cluster, o.user, pair)
}
