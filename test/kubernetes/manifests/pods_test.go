// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"flag"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	apiserver "github.com/borough-io/borough/cmd/borough-apiserver/app"
	apiserveroptions "github.com/borough-io/borough/cmd/borough-apiserver/app/options"
	controllermanager "github.com/borough-io/borough/cmd/borough-controller-manager/app"
	controllermanageroptions "github.com/borough-io/borough/cmd/borough-controller-manager/app/options"
	boroughsource "github.com/borough-io/borough/cmd/borough-source/app"
	sourceoptions "github.com/borough-io/borough/cmd/borough-source/app/options"
)

// workload is a Deployment, a StatefulSet or a DaemonSet.
type workload struct {
	namespace, name string
	selector        *metav1.LabelSelector
	pod             *corev1.PodTemplateSpec
	claims          []corev1.PersistentVolumeClaim
	isDaemon        bool
}

func workloads(all objects) []workload {
	var found []workload
	each(all, func(d *appsv1.Deployment) {
		found = append(found, workload{d.Namespace, d.Name, d.Spec.Selector, &d.Spec.Template, nil, false})
	})
	each(all, func(s *appsv1.StatefulSet) {
		found = append(found, workload{s.Namespace, s.Name, s.Spec.Selector, &s.Spec.Template, s.Spec.VolumeClaimTemplates, false})
	})
	each(all, func(d *appsv1.DaemonSet) {
		found = append(found, workload{d.Namespace, d.Name, d.Spec.Selector, &d.Spec.Template, nil, true})
	})
	return found
}

// TestArguments parses and validates the arguments of each container with the
// command that it runs. Unknown flags, malformed values and invalid combinations
// fail.
func TestArguments(t *testing.T) {
	forEachCase(t, func(t *testing.T, all objects) {
		for _, w := range workloads(all) {
			for _, c := range w.pod.Spec.Containers {
				if err := accept(t, c.Name, expand(c)); err != nil {
					t.Errorf("%s: %v", c.Name, err)
				}
				names := map[string]bool{}
				for _, arg := range c.Args {
					name, _, _ := strings.Cut(arg, "=")
					if names[name] {
						t.Errorf("%s: duplicate flag %s", c.Name, name)
					}
					names[name] = true
				}
			}
		}
	})
}

// expand returns the arguments of a container with the values of its environment, as the
// kubelet does. A value that is not constant is "value".
func expand(c corev1.Container) (args []string) {
	for _, arg := range c.Args {
		for _, env := range c.Env {
			value := env.Value
			if env.ValueFrom != nil {
				value = "value"
			}
			arg = strings.ReplaceAll(arg, "$("+env.Name+")", value)
		}
		args = append(args, arg)
	}
	return args
}

// TestMemoryLimit checks that the garbage collector of the servers and of etcd keeps to
// the requested memory, if there is a request: without one, the value would be 0.
func TestMemoryLimit(t *testing.T) {
	for container, component := range map[string]string{"borough-apiserver": "apiserver", "etcd": "etcd"} {
		t.Run(component, func(t *testing.T) { testMemoryLimit(t, container, component) })
	}
}

func testMemoryLimit(t *testing.T, name, component string) {
	limit := func(all objects) (value *corev1.EnvVarSource, container *corev1.Container) {
		for _, w := range workloads(all) {
			for _, c := range w.pod.Spec.Containers {
				if c.Name != name {
					continue
				}
				container = &c
				for _, env := range c.Env {
					if env.Name == "GOMEMLIMIT" {
						value = env.ValueFrom
					}
				}
			}
		}
		return value, container
	}
	check := func(t *testing.T, all objects) {
		t.Helper()
		value, container := limit(all)
		if container == nil && name == "etcd" {
			return // an external one
		}
		if value == nil || value.ResourceFieldRef == nil || value.ResourceFieldRef.Resource != "requests.memory" || container.Resources.Requests.Memory().IsZero() {
			t.Errorf("GOMEMLIMIT of %s is %v", name, value)
		}
	}
	forEachCase(t, check)
	values := "--set=" + component + ".resources"
	t.Run("chart", func(t *testing.T) {
		check(t, decode(t, helm(t, values+".requests.memory=3Gi")))
	})
	for _, arg := range []string{values + ".requests.memory=null", values + ".requests=null", values + "=null"} {
		t.Run(arg, func(t *testing.T) {
			if value, container := limit(decode(t, helm(t, arg))); value != nil || container == nil {
				t.Errorf("GOMEMLIMIT of %s is %v", name, value)
			}
		})
	}
}

// TestInvalidArguments checks that accept, which TestArguments uses, rejects
// invalid arguments.
func TestInvalidArguments(t *testing.T) {
	for name, args := range map[string][]string{
		"borough-apiserver":          {"--etcd-cafile=x"}, // without --etcd-servers
		"borough-controller-manager": {"--http-bind-address=10280"},
		"borough-source":             {"--from=/pods", "--node=$(NODE_NAME)"},
		"etcd":                       {"--nonsense"},
	} {
		if err := accept(t, name, args); err == nil {
			t.Errorf("%s accepts %v", name, args)
		}
	}
}

// accept returns the error of the container's command for the arguments. The
// command does not run.
func accept(t *testing.T, container string, args []string) error {
	t.Helper()
	var cmd *cobra.Command
	ran := false
	switch container {
	case "borough-apiserver":
		cmd = apiserver.NewCommand(func(context.Context, *apiserveroptions.Options) error { ran = true; return nil })
	case "borough-controller-manager":
		cmd = controllermanager.NewCommand(func(context.Context, *controllermanageroptions.Config) error { ran = true; return nil })
	case "borough-source":
		cmd = boroughsource.NewCommand(func(context.Context, *sourceoptions.Config) error { ran = true; return nil })
	case "etcd":
		fs := flag.NewFlagSet("etcd", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		embed.NewConfig().AddFlags(fs)
		return fs.Parse(args)
	default:
		t.Fatalf("unknown container %q", container)
	}
	// A Pod has a service account instead of a kubeconfig.
	cmd.SetArgs(append(slices.Clone(args), "--kubeconfig="+writeKubeconfig(t)))
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	if err == nil && !ran {
		t.Errorf("%s %v: got neither a run nor an error", container, args)
	}
	return err
}

func writeKubeconfig(t *testing.T) string {
	t.Helper()
	path := t.TempDir() + "/kubeconfig"
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPodSecurity checks that every Pod meets the restricted Pod Security
// Standard, which its namespace enforces, and our additional rules. The Pods of sources,
// which have a namespace of their own, meet it except for a directory of the node.
func TestPodSecurity(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	forEachCase(t, func(t *testing.T, all objects) {
		if got := all[key("Namespace", "", namespace)].GetLabels()[podsecurity.EnforceLevelLabel]; got != string(restricted.Level) {
			t.Errorf("the namespace enforces %q", got)
		}
		for _, w := range workloads(all) {
			spec := w.pod.Spec
			if w.namespace != namespace {
				withoutDirectories := slices.DeleteFunc(slices.Clone(spec.Volumes), func(v corev1.Volume) bool { return v.HostPath != nil })
				if len(withoutDirectories) != len(spec.Volumes)-1 {
					t.Errorf("%s: needs no namespace of its own", w.name)
				}
				spec.Volumes = withoutDirectories
			}
			if result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &w.pod.ObjectMeta, &spec)); !result.Allowed {
				t.Errorf("%s: %s", w.name, result.ForbiddenDetail())
			}
			if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken != (w.name != "borough-etcd") {
				t.Errorf("%s: automountServiceAccountToken", w.name)
			}
			for _, c := range spec.Containers {
				if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
					t.Errorf("%s: readOnlyRootFilesystem is not set", w.name)
				}
				for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
					if c.Resources.Requests.Name(resource, "").IsZero() {
						t.Errorf("%s: requests no %s", w.name, resource)
					}
				}
				for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
					if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Port.StrVal == "" {
						t.Errorf("%s: a probe is missing or does not use a named port", w.name)
					}
				}
				if path := c.LivenessProbe.HTTPGet.Path; !strings.HasPrefix(path, "/livez") {
					t.Errorf("%s: the path of the liveness probe is %s", w.name, path)
				}
				if path := c.ReadinessProbe.HTTPGet.Path; !strings.HasPrefix(path, "/readyz") {
					t.Errorf("%s: the path of the readiness probe is %s", w.name, path)
				}
			}
		}
	})
}

// TestFilesAreMounted checks that every file in an argument is on a volume, that every
// volume mount is used, and that those of the node are read-only.
func TestFilesAreMounted(t *testing.T) {
	forEachCase(t, func(t *testing.T, all objects) {
		for _, w := range workloads(all) {
			volumes, onNode := map[string]bool{}, map[string]bool{}
			for _, v := range w.pod.Spec.Volumes {
				volumes[v.Name], onNode[v.Name] = true, v.HostPath != nil
			}
			for _, claim := range w.claims {
				volumes[claim.Name] = true
			}
			for _, c := range w.pod.Spec.Containers {
				mounts := map[string]bool{}
				for _, m := range c.VolumeMounts {
					if onNode[m.Name] && !m.ReadOnly {
						t.Errorf("%s: can write to the directory of the node %s", w.name, m.Name)
					}
					if !volumes[m.Name] {
						t.Errorf("%s: no volume %s", w.name, m.Name)
					}
					mounts[m.MountPath] = false
				}
				for _, arg := range c.Args {
					_, file, _ := strings.Cut(arg, "=")
					if !strings.HasPrefix(file, "/") {
						continue
					}
					mount, ok := longestPrefix(slices.Collect(maps.Keys(mounts)), file)
					if !ok {
						t.Errorf("%s: %s is on no volume", w.name, arg)
					}
					mounts[mount] = true
				}
				for mount, used := range mounts {
					if !used {
						t.Errorf("%s: no argument has a file on %s", w.name, mount)
					}
				}
			}
		}
	})
}

func longestPrefix(paths []string, file string) (string, bool) {
	var best string
	for _, path := range paths {
		if strings.HasPrefix(file, path+"/") && len(path) > len(best) {
			best = path
		}
	}
	return best, best != ""
}
