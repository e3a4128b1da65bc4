// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	apiuser "k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/harness/tcpproxy"
)

const numberOfUsers = 30

// user is a user with an informer, which connects to a server through a proxy, and a
// client for single requests.
type user struct {
	view     *view
	proxy    *tcpproxy.Proxy
	informer *client
	store    cache.Store
	shared   bool // the informer is a shared one

	reader     *client
	config     *rest.Config
	namespaces tenancyv1.NamespaceInterface // of the reader
}

// mode is how an informer gets its objects.
type mode int

const (
	watchList           mode = iota // with initial events
	listWatch                       // lists, then watches
	listWatchNoBookmark             // the same, without bookmarks
	modes
)

// newIdentities returns the users. The last group of each is system:authenticated, and
// the first user sees all Namespaces.
func newIdentities() []identity {
	var all []identity
	for i := range numberOfUsers {
		who := identity{fmt.Sprintf("user-%d", i), []string{fmt.Sprintf("team-%d", i%4)}}
		switch {
		case i == 0:
			who.groups = []string{apiuser.SystemPrivilegedGroup}
		case i%6 == 5:
			namespace := namespaceNames[i/6]
			who.name = serviceaccount.MakeUsername(namespace, "robot")
			who.groups = serviceaccount.MakeGroupNames(namespace)
		}
		who.groups = append(who.groups, apiuser.AllAuthenticated)
		all = append(all, who)
	}
	return all
}

// newViews returns the views of the users. Those of every fifth are limited by a
// selector.
func newViews(users []identity) []*view {
	var views []*view
	for i, who := range users {
		selector := labels.Everything()
		if i%5 == 3 {
			selector = labels.SelectorFromSet(labels.Set{"tier": tiers[0]})
		}
		views = append(views, newView(who, selector))
	}
	return views
}

// newUser starts the informer of a user at a server.
func (x *exactness) newUser(t *testing.T, v *view, i int) *user {
	t.Helper()
	server := x.replicas.Servers[i%2].Borough
	proxy, err := tcpproxy.New(addressOf(server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	u := &user{
		view:     v,
		proxy:    proxy,
		shared:   i%2 == 0,
		informer: newClient(v, x.floor.Load, x.faulty.Load),
		reader:   newClient(v, x.floor.Load, x.faulty.Load),
	}
	config := server.Config(t, "admin")
	config.Host = "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(proxy.Port()))
	config.Impersonate = rest.ImpersonationConfig{UserName: v.name, Groups: v.groups}
	u.config = config
	u.namespaces = newNamespaces(t, config, u.reader)
	u.start(t.Context(), newNamespaces(t, config, u.informer), mode(i%int(modes)))
	return u
}

// newNamespaces returns a client with a connection of its own.
func newNamespaces(t *testing.T, config *rest.Config, c *client) tenancyv1.NamespaceInterface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Dial = (&net.Dialer{}).DialContext
	config.ContentType = runtime.ContentTypeJSON // which the recorder decodes
	config.Wrap(c.wrap)
	clientset, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	return clientset.TenancyV1().Namespaces()
}

// start starts the informer. A shared one waits up to a minute after failures, so the
// others are only the reflector and the store of an informer, with short waits.
func (u *user) start(ctx context.Context, namespaces tenancyv1.NamespaceInterface, m mode) {
	lw := lister{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = u.view.selector.String()
			return namespaces.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = u.view.selector.String()
			options.AllowWatchBookmarks = options.AllowWatchBookmarks && m != listWatchNoBookmark
			return namespaces.Watch(ctx, options)
		},
	}, m}
	if u.shared {
		informer := cache.NewSharedIndexInformer(lw, &v1.Namespace{}, 0, cache.Indexers{})
		u.store = informer.GetStore()
		go informer.RunWithContext(ctx)
		return
	}
	u.store = cache.NewStore(cache.MetaNamespaceKeyFunc)
	reflector := cache.NewReflectorWithOptions(lw, &v1.Namespace{}, u.store, cache.ReflectorOptions{
		Backoff: &wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Steps: 10, Cap: 500 * time.Millisecond},
	})
	go reflector.RunWithContext(ctx)
}

// lister is a ListWatch with or without initial events.
type lister struct {
	*cache.ListWatch
	mode mode
}

// IsWatchListSemanticsUnSupported is what client-go asks before it requests initial
// events.
func (l lister) IsWatchListSemanticsUnSupported() bool { return l.mode != watchList }

// stored returns what the informer has.
func (u *user) stored() []object {
	seen := map[string]*version{}
	for _, obj := range u.store.List() {
		ns := obj.(*v1.Namespace)
		revision, err := parseRevision(ns.ResourceVersion)
		if err != nil {
			panic(err) // the recorder has parsed it
		}
		seen[ns.Name] = newVersion(&ns.ObjectMeta, revision)
	}
	return objects(seen)
}

func addressOf(server *harness.Borough) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(server.Port))
}
