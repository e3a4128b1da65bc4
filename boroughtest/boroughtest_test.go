// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package boroughtest_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/borough-io/borough/boroughtest"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
)

func newClient(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// pod returns a Pod that is removed when its finalizers are.
func pod(name string, finalizers ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

func create(t testing.TB, client kubernetes.Interface, namespace string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// TestBothGroups creates a Pod of core/v1 and reads that of tenancy.borough.io.
func TestBothGroups(t *testing.T) {
	s := boroughtest.Shared(t)
	ns := s.Namespace(t)
	created := create(t, newClient(t, s.Config()), ns, pod("web"))
	tenancy, err := versioned.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	got, err := tenancy.TenancyV1().Pods(ns).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || got.UID != created.UID {
		t.Errorf("got %+v, %v, want the Pod %s", got, err, created.UID)
	}
}

// TestDefaultNamespace checks that the server adds nothing to objects in the Namespace
// default.
func TestDefaultNamespace(t *testing.T) {
	s := boroughtest.Shared(t)
	web := pod("")
	web.GenerateName = "web-"
	if got := create(t, newClient(t, s.Config()), "default", web).Spec.Containers[0].Resources; got.Requests != nil || got.Limits != nil {
		t.Errorf("a Pod in the Namespace default has the resources %v", got)
	}
}

func TestConfigIsACopy(t *testing.T) {
	s := boroughtest.Shared(t)
	changed := s.Config()
	changed.Host, changed.CAData[0] = "https://127.0.0.1:1", 'x'
	if got := s.Config(); got.Host == changed.Host || got.CAData[0] == 'x' || got.QPS >= 0 {
		t.Errorf("got %v after a change of another", got)
	}
}

// TestAs checks that a user has no rights but those that are granted, to the user or to a
// group, and that the user authenticates.
func TestAs(t *testing.T) {
	s := boroughtest.Shared(t)
	ns, admin := s.Namespace(t), newClient(t, s.Config())
	config := s.As(t, "alice", "team-a", "team-b")
	if config.Impersonate.UserName != "" || len(config.CertData) == 0 {
		t.Errorf("alice does not authenticate with a certificate: %v", config)
	}
	list := func(config *rest.Config) error {
		_, err := newClient(t, config).CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list(config); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "alice"`) {
		t.Errorf("alice lists Pods without rights: %v", err)
	}
	_, err := admin.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "team-b"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := list(config); err != nil {
		t.Errorf("alice lists Pods with the rights of a group: %v", err)
	}
	if err := list(s.As(t, "bob", "team-c")); !apierrors.IsForbidden(err) {
		t.Errorf("bob lists Pods without rights: %v", err)
	}
}

// TestKubeconfig reads the kubeconfig of a user as kubectl does.
func TestKubeconfig(t *testing.T) {
	s := boroughtest.Shared(t)
	path := boroughtest.Kubeconfig(t, s.As(t, "alice", "team-a"))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got the mode %v, error %v", info.Mode(), err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	review, err := newClient(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if user := review.Status.UserInfo; user.Username != "alice" || !slices.Contains(user.Groups, "team-a") {
		t.Errorf("the user is %v", user)
	}
}

// TestServersAreIndependent runs two servers in one process, of which the second starts while
// the first serves requests.
func TestServersAreIndependent(t *testing.T) {
	one := boroughtest.Start(t)
	ns := one.Namespace(t)
	stop := startWriters(t, one, ns)
	two := boroughtest.Start(t)
	stop()
	create(t, newClient(t, one.Config()), ns, pod("web"))
	if _, err := newClient(t, two.Config()).CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other server has the Namespace %s: %v", ns, err)
	}
	stranger := two.Config()
	stranger.CertData, stranger.KeyData = one.Config().CertData, one.Config().KeyData
	if _, err := newClient(t, stranger).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("the other server accepts the certificate: %v", err)
	}
	two.Crash(t)
	two.Restart(t)
	create(t, newClient(t, one.Config()), ns, pod("db"))
	create(t, newClient(t, two.Config()), two.Namespace(t), pod("web"))
}

// TestNothingIsLeft checks that files, open files and the port are gone after the test.
// TestMain checks goroutines.
func TestNothingIsLeft(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("GOTMPDIR", tmp) // t.TempDir prefers it
	var address string
	t.Run("test", func(t *testing.T) {
		s := boroughtest.Start(t)
		server, err := url.Parse(s.Config().Host)
		if err != nil {
			t.Fatal(err)
		}
		address = server.Host
		if open := files(t); open == "" {
			t.Error("a server that runs has no files: the test sees nothing")
		}
		create(t, newClient(t, s.Config()), s.Namespace(t), pod("web"))
		s.Crash(t)
	})
	if left := files(t); left != "" {
		t.Errorf("files are left:\n%s", left)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	_ = listener.Close()
}

// files lists the files in the temporary directory, and those that are open.
func files(t *testing.T) string {
	t.Helper()
	tmp := os.Getenv("TMPDIR")
	found, err := filepath.Glob(filepath.Join(tmp, "*"))
	if err != nil {
		t.Fatal(err)
	}
	links, _ := filepath.Glob("/proc/self/fd/*") // not on every system
	for _, link := range links {
		if file, err := os.Readlink(link); err == nil && strings.HasPrefix(file, tmp) {
			found = append(found, file)
		}
	}
	return strings.Join(found, "\n")
}

func TestWithLogger(t *testing.T) {
	var mu sync.Mutex
	var lines strings.Builder
	logger := funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(&lines, prefix, args)
	}, funcr.Options{})
	boroughtest.Start(t, boroughtest.WithLogger(logger)).Restart(t)
	mu.Lock()
	defer mu.Unlock()
	if want := "The namespace controller has ended"; !strings.Contains(lines.String(), want) {
		t.Errorf("the log lacks %q:\n%s", want, lines.String())
	}
}

// TestWithMaxNamespacesPerUser requests Namespaces up to the limit and beyond.
func TestWithMaxNamespacesPerUser(t *testing.T) {
	s := boroughtest.Start(t, boroughtest.WithMaxNamespacesPerUser(1))
	client, err := versioned.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	request := func(name string) error {
		_, err := client.TenancyV1().NamespaceRequests().Create(t.Context(), &v1.NamespaceRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	if err := request("first"); err != nil {
		t.Fatal(err)
	}
	if err := request("second"); !apierrors.HasStatusCause(err, v1.NamespaceLimitCause) {
		t.Errorf("beyond the limit: got %v", err)
	}
}

// TestNoFlags checks that no package registers flags.
func TestNoFlags(t *testing.T) {
	flag.VisitAll(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			t.Errorf("the flag -%s is registered", f.Name)
		}
	})
	pflag.VisitAll(func(f *pflag.Flag) { t.Errorf("the flag --%s is registered", f.Name) })
}

// TestDependencies checks that users of the package do not compile the commands, tools of
// an administrator and helpers of tests.
func TestDependencies(t *testing.T) {
	const module = "github.com/borough-io/borough/"
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dependency := range strings.Lines(string(output)) {
		dependency = strings.TrimSpace(dependency)
		own, isOwn := strings.CutPrefix(dependency, module)
		if isOwn && (strings.HasPrefix(own, "test/") || strings.HasPrefix(own, "cmd/borough-controller-manager/") || own == "cmd/borough-apiserver/app" || own == "pkg/doctor" || strings.HasSuffix(own, "test") && own != "boroughtest") ||
			strings.HasPrefix(dependency, "go.uber.org/goleak") {
			t.Errorf("it depends on %s", dependency)
		}
	}
}

// fakeTest records what a test would have failed with.
type fakeTest struct {
	testing.TB
	ctx      context.Context
	cancel   context.CancelFunc
	cleanups []func()
	errors   []string
}

func newFakeTest(t testing.TB) *fakeTest {
	ctx, cancel := context.WithCancel(t.Context())
	return &fakeTest{TB: t, ctx: ctx, cancel: cancel}
}

func (f *fakeTest) Context() context.Context { return f.ctx }
func (f *fakeTest) Cleanup(cleanup func())   { f.cleanups = append(f.cleanups, cleanup) }
func (f *fakeTest) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *fakeTest) end() {
	f.cancel()
	for _, cleanup := range f.cleanups {
		cleanup()
	}
}
