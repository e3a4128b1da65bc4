// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// client demonstrates the typed clients and informers. It creates a Namespace with
// a LimitRange and a Pod, prints the defaults that the Pod got, deletes the
// Namespace, and waits until it is removed. It deletes the Namespace after an error,
// too. It uses the server in $KUBECONFIG.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	tenancyv1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	tenancyinformers "github.com/borough-io/borough/pkg/generated/informers/externalversions/tenancy/v1"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err = run(ctx, client)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, client versioned.Interface) (err error) {
	tenancy := client.TenancyV1()
	ns, err := tenancy.Namespaces().Create(ctx, &tenancyv1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a Namespace: %w", err)
	}
	defer func() {
		if err == nil {
			return
		}
		// The context may be why it failed.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if deleteErr := tenancy.Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); deleteErr != nil && !apierrors.IsNotFound(deleteErr) {
			err = errors.Join(err, fmt.Errorf("delete the Namespace: %w", deleteErr))
		}
	}()
	_, err = tenancy.LimitRanges(ns.Name).Create(ctx, &tenancyv1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "defaults"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type:    corev1.LimitTypeContainer,
			Default: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a LimitRange: %w", err)
	}
	pod, err := tenancy.Pods(ns.Name).Create(ctx, &tenancyv1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1.29"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a Pod: %w", err)
	}
	fmt.Printf("The Pod may use %s of memory.\n", pod.Spec.Containers[0].Resources.Limits.Memory())

	// The informer starts before the Namespace is deleted, so it cannot miss the
	// event. If it had to list again, it has only an older state of the Namespace.
	gone := make(chan struct{})
	informers := externalversions.NewSharedInformerFactory(client, 0)
	namespaces := informers.Tenancy().V1().Namespaces().TypedInformer()
	if _, err := namespaces.AddTypedEventHandler(tenancyinformers.NamespaceHandlerFuncs{
		DeleteFunc: func(deleted tenancyinformers.DeletedNamespace) {
			if last := deleted.OptionalObj; last != nil && last.UID == ns.UID {
				close(gone)
			}
		},
	}); err != nil {
		return fmt.Errorf("watch the Namespaces: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer informers.Shutdown()
	defer cancel()
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())

	if err := tenancy.Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete the Namespace: %w", err)
	}
	select {
	case <-gone:
		fmt.Println("The Namespace is gone, with all that was in it.")
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
