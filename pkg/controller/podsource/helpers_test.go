// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/transport"
	componentconfig "k8s.io/component-base/config"
	"k8s.io/component-base/metrics"
	"sigs.k8s.io/yaml"

	"github.com/borough-io/borough/boroughtest"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/pkg/source/filesource"
	"github.com/borough-io/borough/test/poll"
)

func TestMain(m *testing.M) { os.Exit(boroughtest.Main(m)) }

// fixture is a source with a directory, on the server that the tests share.
type fixture struct {
	testing.TB
	server    *boroughtest.Server
	dir       string
	identity  source.Identity
	namespace string
	// admin and kubernetes may do everything.
	admin      versioned.Interface
	kubernetes kubernetes.Interface
	registry   metrics.KubeRegistry
	metrics    *Metrics
	// wrap, if not nil, wraps the transport of the controllers.
	wrap transport.WrapperFunc
	// retryPeriod, if not 0, is the refusedRetryPeriod of the controllers.
	retryPeriod time.Duration
}

const group = "sources"

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{TB: t, server: boroughtest.Shared(t), dir: t.TempDir(), registry: metrics.NewKubeRegistry()}
	f.metrics = NewMetrics(f.registry)
	f.identity = source.Identity{Kind: source.File, Location: f.dir, Node: "node-1"}
	f.namespace = f.identity.Namespace()
	var err error
	if f.admin, err = versioned.NewForConfig(f.server.Config()); err == nil {
		f.kubernetes, err = kubernetes.NewForConfig(f.server.Config())
	}
	f.must(err)
	_, err = f.kubernetes.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "borough-source-requester"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group}},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		f.must(err)
	}
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// config returns a config without leader election.
func (f *fixture) config() Config {
	return Config{Source: f.identity, Reader: filesource.New(f.dir)}
}

// leaderElection is as fast as the library allows.
var leaderElection = componentconfig.LeaderElectionConfiguration{
	LeaderElect:   true,
	LeaseDuration: metav1.Duration{Duration: time.Second},
	RenewDeadline: metav1.Duration{Duration: 500 * time.Millisecond},
	RetryPeriod:   metav1.Duration{Duration: 100 * time.Millisecond},
}

// steadyLeaderElection keeps the Lease of a leader that a busy machine holds up.
var steadyLeaderElection = componentconfig.LeaderElectionConfiguration{
	LeaderElect:   true,
	LeaseDuration: metav1.Duration{Duration: 2 * time.Minute},
	RenewDeadline: metav1.Duration{Duration: 100 * time.Second},
	RetryPeriod:   leaderElection.RetryPeriod,
}

// new returns a controller with the rights of a user who may only request Namespaces.
func (f *fixture) new(config Config) *Controller {
	f.Helper()
	client := f.server.As(f.TB, "source-"+f.identity.ID(), group)
	client.Wrap(f.wrap)
	c, err := New(client, config, f.metrics)
	f.must(err)
	c.refusedRetryPeriod = cmp.Or(f.retryPeriod, c.refusedRetryPeriod)
	return c
}

// respond returns the response of a server to a request that fails.
func respond(failure *apierrors.StatusError) (*http.Response, error) {
	status := failure.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	recorder.WriteHeader(int(status.Code))
	err := json.NewEncoder(recorder).Encode(status)
	return recorder.Result(), err
}

// start runs a controller until the test ends, or stop is called.
func (f *fixture) start(config Config) (c *Controller, stop func()) {
	f.Helper()
	c = f.new(config)
	end := f.run(c)
	stop = func() {
		if err := end(); err != nil {
			f.Error(err)
		}
	}
	f.Cleanup(stop)
	return c, stop
}

// run runs a controller until stop is called, which returns its error the first time.
func (f *fixture) run(c *Controller) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- c.Run(ctx)
		close(ended)
	}()
	return func() error {
		cancel()
		return <-ended
	}
}

func (f *fixture) leaseName() string { return "borough-source-" + f.identity.ID() }

// lease returns the Lease of the source.
func (f *fixture) lease() *coordinationv1.Lease {
	f.Helper()
	lease, err := f.kubernetes.CoordinationV1().Leases(f.namespace).Get(f.Context(), f.leaseName(), metav1.GetOptions{})
	f.must(err)
	return lease
}

// takeLease gives the Lease to another process, which does not renew it.
func (f *fixture) takeLease() {
	f.Helper()
	// A patch, because the leader updates the Lease all the time.
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"holderIdentity": "other", "renewTime": metav1.NowMicro()}})
	f.must(err)
	_, err = f.kubernetes.CoordinationV1().Leases(f.namespace).Patch(f.Context(), f.leaseName(), types.MergePatchType, patch, metav1.PatchOptions{})
	f.must(err)
}

// write writes a file with Pods, as editors do.
func (f *fixture) write(file string, pods ...*v1.Pod) {
	f.Helper()
	var documents []string
	for _, pod := range pods {
		data, err := yaml.Marshal(pod)
		f.must(err)
		documents = append(documents, string(data))
	}
	f.writeText(file, strings.Join(documents, "---\n"))
}

func (f *fixture) writeText(file, text string) {
	f.Helper()
	temporary := filepath.Join(f.dir, ".new")
	f.must(os.WriteFile(temporary, []byte(text), 0o644))
	f.must(os.Rename(temporary, filepath.Join(f.dir, file)))
}

func (f *fixture) remove(file string) {
	f.Helper()
	f.must(os.Remove(filepath.Join(f.dir, file)))
}

// newPod returns a Pod with a grace period of a second.
func newPod(name string, modify ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	must := yaml.Unmarshal([]byte("terminationGracePeriodSeconds: 1\ncontainers: [{name: c, image: 'image:1'}]"), &pod.Spec)
	if must != nil {
		panic(must)
	}
	for _, f := range modify {
		f(pod)
	}
	return pod
}

func image(image string) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Spec.Containers[0].Image = image }
}

// pods returns the Pods of the Namespace by name.
func (f *fixture) pods() map[string]v1.Pod {
	f.Helper()
	list, err := f.admin.TenancyV1().Pods(f.namespace).List(f.Context(), metav1.ListOptions{})
	f.must(err)
	pods := map[string]v1.Pod{}
	for _, pod := range list.Items {
		pods[pod.Name] = pod
	}
	return pods
}

// expect waits until the Pods of the Namespace, none of which is being deleted, have the
// names and images, and returns them.
func (f *fixture) expect(want ...string) (pods map[string]v1.Pod) {
	f.Helper()
	slices.Sort(want)
	poll.Eventually(f.TB, func() string {
		pods = f.pods()
		var got []string
		for name, pod := range pods {
			text := name + "=" + pod.Spec.Containers[0].Image
			if pod.DeletionTimestamp != nil {
				text += " (being deleted)"
			}
			got = append(got, text)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Sprintf("the Pods are %q, want %q", got, want)
		}
		return ""
	})
	return pods
}

// status returns the status in the annotation of the Namespace.
func (f *fixture) status() (status source.Status) {
	f.Helper()
	namespace, err := f.admin.TenancyV1().Namespaces().Get(f.Context(), f.namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return status
	}
	f.must(err)
	if text := namespace.Annotations[f.identity.StatusAnnotation()]; text != "" {
		f.must(json.Unmarshal([]byte(text), &status))
	}
	return status
}

// expectProblems waits until the problems in the annotation are those: FILE/POD: MESSAGE,
// where the message is a part.
func (f *fixture) expectProblems(want ...string) {
	f.Helper()
	poll.Eventually(f.TB, func() string {
		problems := f.status().Problems
		for i, problem := range problems {
			text := fmt.Sprintf("%s/%s: %s", problem.File, problem.Pod, problem.Message)
			place, part, _ := strings.Cut(append(want, make([]string, len(problems))...)[i], ": ")
			if !strings.HasPrefix(text, place+": ") || !strings.Contains(text, part) {
				return fmt.Sprintf("the problem %q, want %q", text, want)
			}
		}
		if len(problems) != len(want) {
			return fmt.Sprintf("the problems %v, want %q", problems, want)
		}
		return ""
	})
}

// expectReady waits until a controller is ready, which it also is when it waits for another.
func (f *fixture) expectReady(c *Controller) {
	f.Helper()
	poll.Eventually(f.TB, func() string {
		if err := c.Ready(); err != nil {
			return err.Error()
		}
		return ""
	})
}

// expectCreatedAgain waits until there is another Pod with the name.
func (f *fixture) expectCreatedAgain(before v1.Pod) {
	f.Helper()
	poll.Eventually(f.TB, func() string {
		if pod, exists := f.pods()[before.Name]; !exists || pod.UID == before.UID {
			return "the Pod was not created again"
		}
		return ""
	})
}
