// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// Config says where the certificate is kept and what it is for.
type Config struct {
	// Secret holds the certificate.
	Secret types.NamespacedName
	// APIService is the name of the one that is told what to trust.
	APIService string
	// Hosts are the DNS names that the server is reached by; the first one
	// names the certificate.
	Hosts []string
	// Lifetime of a certificate. After 60 % of it the next one is made.
	Lifetime time.Duration
}

// Keeper keeps the certificate. Any number of replicas may each run one: a
// write says which version of the Secret it is based on, and who is late reads
// again.
type Keeper struct {
	config     Config
	policy     policy
	client     kubernetes.Interface
	dynamic    dynamic.Interface
	secret     cache.SharedInformer
	apiService cache.SharedInformer
	// changed has a token when the Secret or the APIService changed.
	changed chan struct{}
	// syncing is held by the one that looks after the certificate.
	syncing sync.Mutex
	// knownSince says since when the host has trusted a CA, by its text.
	knownSince map[string]time.Time

	mu        sync.Mutex
	bundle    bundle
	listeners []dynamiccertificates.Listener
}

var (
	_ dynamiccertificates.CertKeyContentProvider = &Keeper{}
	_ dynamiccertificates.ControllerRunner       = &Keeper{}
)

// NewKeeper returns a Keeper. It has nothing to serve before RunOnce.
func NewKeeper(config Config, client kubernetes.Interface, dynamic dynamic.Interface) (*Keeper, error) {
	k := &Keeper{
		config:  config,
		policy:  policy{hosts: config.Hosts, lifetime: config.Lifetime},
		client:  client,
		dynamic: dynamic,
		changed: make(chan struct{}, 1),
	}
	secrets, services := client.CoreV1().Secrets(config.Secret.Namespace), dynamic.Resource(apiServices)
	k.secret = informer(&corev1.Secret{}, config.Secret.Name, client,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return secrets.List(ctx, o) },
		secrets.Watch)
	k.apiService = informer(&unstructured.Unstructured{}, config.APIService, dynamic,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return services.List(ctx, o) },
		services.Watch)
	for _, informer := range []cache.SharedInformer{k.secret, k.apiService} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { k.wake() },
			UpdateFunc: func(any, any) { k.wake() },
			DeleteFunc: func(any) { k.wake() },
		}); err != nil {
			return nil, fmt.Errorf("watch for changes of the serving certificate: %w", err)
		}
	}
	return k, nil
}

// informer follows one object.
func informer(example runtime.Object, name string, client any, list cache.ListWithContextFunc, watcher cache.WatchFuncWithContext) cache.SharedInformer {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return cache.NewSharedInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return watcher(ctx, o)
		},
	}, client), example, 0)
}

func (k *Keeper) wake() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Name tells certificates apart in logs.
func (k *Keeper) Name() string { return "serving-cert::secret/" + k.config.Secret.String() }

// CurrentCertKeyContent returns what to serve with.
func (k *Keeper) CurrentCertKeyContent() (cert, key []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bundle.serving == nil {
		return nil, nil
	}
	return k.bundle.serving.certPEM, k.bundle.serving.keyPEM
}

// AddListener has the listener told when there is another certificate.
func (k *Keeper) AddListener(listener dynamiccertificates.Listener) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listeners = append(k.listeners, listener)
}

// RunOnce sees to it that there is a certificate and that the host trusts it.
func (k *Keeper) RunOnce(ctx context.Context) error {
	_, err := k.sync(ctx)
	return err
}

// Run keeps the certificate until the context ends. The number of workers is
// part of the interface; there is one.
func (k *Keeper) Run(ctx context.Context, _ int) {
	logger := klog.FromContext(ctx).WithValues("secret", k.config.Secret, "apiService", k.config.APIService)
	ctx = klog.NewContext(ctx, logger)
	var informers sync.WaitGroup
	defer informers.Wait()
	informers.Go(func() { k.secret.RunWithContext(ctx) })
	informers.Go(func() { k.apiService.RunWithContext(ctx) })

	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 30 * time.Second}
	retry := backoff
	for {
		next, err := k.sync(ctx)
		if err != nil {
			next = time.Now().Add(retry.Step())
			if ctx.Err() == nil {
				logger.Error(err, "Could not keep the serving certificate, will try again", "at", next)
			}
		} else {
			retry = backoff
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-k.changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// sync brings the Secret, the APIService and what is served up to date, in this
// order, and returns when there is something to do again.
func (k *Keeper) sync(ctx context.Context) (next time.Time, err error) {
	k.syncing.Lock()
	defer k.syncing.Unlock()
	for {
		// Read before the Secret and written after it, the APIService can't get
		// what another replica has replaced meanwhile.
		host, err := k.readHost(ctx)
		if err != nil {
			return time.Time{}, err
		}
		stored, next, err := k.syncSecret(ctx, host.knownSince)
		if err != nil {
			return time.Time{}, err
		}
		err = k.tellHost(ctx, host, stored)
		if apierrors.IsConflict(err) {
			continue
		}
		if err == nil || !host.knownSince(stored.serving.ca).IsZero() {
			k.serve(stored)
		}
		return next, err
	}
}

// syncSecret returns what the Secret holds once it holds what it should.
func (k *Keeper) syncSecret(ctx context.Context, knownSince func(*x509.Certificate) time.Time) (bundle, time.Time, error) {
	secrets := k.client.CoreV1().Secrets(k.config.Secret.Namespace)
	for {
		secret, err := secrets.Get(ctx, k.config.Secret.Name, metav1.GetOptions{})
		absent := apierrors.IsNotFound(err)
		if err != nil && !absent {
			return bundle{}, time.Time{}, fmt.Errorf("read the secret of the serving certificate: %w", err)
		}
		if absent {
			secret = &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: k.config.Secret.Name, Namespace: k.config.Secret.Namespace},
				Type:       corev1.SecretTypeTLS,
			}
		}
		// Should somebody have deleted or damaged it, what we serve is still good.
		wanted, next, err := k.policy.advance(readBundle(secret).repaired(k.current()), time.Now(), knownSince)
		if err != nil {
			return bundle{}, time.Time{}, err
		}
		data := wanted.data()
		if maps.EqualFunc(secret.Data, data, bytes.Equal) {
			return wanted, next, nil
		}
		secret.Data = data
		if absent {
			_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
		} else {
			_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		}
		switch {
		case err == nil:
			klog.FromContext(ctx).Info("Renewed what the serving certificate's secret holds", "nextChange", next)
			return wanted, next, nil
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err):
			return bundle{}, time.Time{}, fmt.Errorf("write the secret of the serving certificate: %w", err)
		}
		// Another replica was faster.
	}
}

func (k *Keeper) current() bundle {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.bundle
}

func (k *Keeper) serve(b bundle) {
	k.mu.Lock()
	changed := k.bundle.serving == nil || !bytes.Equal(k.bundle.serving.certPEM, b.serving.certPEM)
	k.bundle = b
	listeners := k.listeners
	k.mu.Unlock()
	if changed {
		for _, listener := range listeners {
			listener.Enqueue()
		}
	}
}

// hostTrust is what an APIService says.
type hostTrust struct {
	caBundle        []byte
	resourceVersion string // none if there is no such APIService yet
	known           map[string]time.Time
}

// knownSince is since when the host has trusted a CA, zero if it does not.
func (h hostTrust) knownSince(ca *x509.Certificate) time.Time { return h.known[string(ca.Raw)] }

func (k *Keeper) readHost(ctx context.Context) (hostTrust, error) {
	service, err := k.dynamic.Resource(apiServices).Get(ctx, k.config.APIService, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		k.knownSince = nil
		return hostTrust{}, nil
	}
	if err != nil {
		return hostTrust{}, fmt.Errorf("read the APIService: %w", err)
	}
	// What can't be read trusts nobody, and is written anew.
	encoded, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle")
	text, _ := base64.StdEncoding.DecodeString(encoded)
	cas, _ := certutil.ParseCertsPEM(text)
	known := make(map[string]time.Time, len(cas))
	for _, ca := range cas {
		if known[string(ca.Raw)] = k.knownSince[string(ca.Raw)]; known[string(ca.Raw)].IsZero() {
			known[string(ca.Raw)] = time.Now()
		}
	}
	k.knownSince = known
	return hostTrust{text, service.GetResourceVersion(), known}, nil
}

// tellHost has the host trust what it should. An APIService that comes later
// wakes the Keeper. It returns a conflict if the APIService has changed since it
// was read.
func (k *Keeper) tellHost(ctx context.Context, host hostTrust, b bundle) error {
	want := b.trustPEM()
	if host.resourceVersion == "" || bytes.Equal(host.caBundle, want) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": host.resourceVersion},
		"spec":     map[string]any{"caBundle": want},
	})
	if err != nil {
		return fmt.Errorf("encode the CA bundle: %w", err)
	}
	_, err = k.dynamic.Resource(apiServices).Patch(ctx, k.config.APIService, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "borough-apiserver"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the CA bundle of the APIService: %w", err)
	}
	klog.FromContext(ctx).Info("Told the host cluster what to trust", "certificates", len(b.trusted))
	return nil
}
