// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/borough-io/borough/cmd/internal/client"
	"github.com/borough-io/borough/cmd/internal/command"
	"github.com/borough-io/borough/pkg/doctor"
)

// recheck is how long doctor waits before it makes the checks again.
const recheck = 2 * time.Second

// newDoctorCommand returns the command that checks a deployment in a cluster.
func newDoctorCommand() *cobra.Command {
	var kubeconfig string
	output := "text"
	options := doctor.Options{Namespace: "borough-system", ServiceAccount: "borough-apiserver", ControllerServiceAccount: "borough-controller-manager", Recheck: recheck}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a deployment in a cluster",
		Long: `borough-apiserver doctor checks a deployment of Borough in a cluster. It reports
each fault with its fix, and exits with code 1 if it found one. It changes
nothing. It skips checks that the user of the kubeconfig lacks the rights for.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			write, ok := map[string]func(io.Writer, []doctor.Finding) error{"text": doctor.WriteText, "json": doctor.WriteJSON}[output]
			if !ok {
				return fmt.Errorf("--output must be text or json, not %q", output)
			}
			load := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig
			if kubeconfig != "" {
				load = (&client.File{Flag: "kubeconfig", Path: kubeconfig}).Load
			}
			config, err := load()
			if err != nil {
				return fmt.Errorf("load the kubeconfig of the cluster: %w", err)
			}
			findings, err := doctor.Examine(cmd.Context(), config, options)
			if err != nil {
				return err
			}
			if err := write(cmd.OutOrStdout(), findings); err != nil {
				return err
			}
			switch faults := doctor.Faults(findings); faults {
			case 0:
				return nil
			case 1:
				return errors.New("found 1 fault")
			default:
				return fmt.Errorf("found %d faults", faults)
			}
		},
	}

	var sets cliflag.NamedFlagSets
	fs := sets.FlagSet("doctor")
	fs.StringVar(&kubeconfig, "kubeconfig", kubeconfig, ""+
		"Kubeconfig of the cluster. Defaults to the kubeconfig that kubectl would use or, inside a Pod, to its service account.")
	fs.StringVarP(&options.Namespace, "namespace", "n", options.Namespace, "Namespace of the cluster that Borough is deployed in.")
	fs.StringVar(&options.ServiceAccount, "service-account", options.ServiceAccount, "Service account that borough-apiserver runs as.")
	fs.StringVar(&options.ControllerServiceAccount, "controller-service-account", options.ControllerServiceAccount, "Service account that borough-controller-manager runs as.")
	fs.StringVarP(&output, "output", "o", output, "Output format: text or json.")
	command.AddSections(cmd, sets)
	return cmd
}
