// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage connects the registry to etcd: to an external etcd cluster over
// gRPC, or to the member embedded in the process, which it calls directly.
//
// It assembles the storage of the API server library, which has no option for a
// custom etcd client. Options keep the library's flags. Every store that the
// Backend creates writes to etcd through the fence (package fence), which
// keeps namespaced objects in existing Namespaces, and leaves out objects that
// cannot be read (package unreadable).
//
//	o := storage.NewOptions()
//	o.AddFlags(flags)
//	errs := o.Validate()
//	var member *embedded.Server
//	if o.Embedded() {
//		member, err = embedded.Start(ctx, embedded.Config{Dir: filepath.Join(dataDir, "etcd")})
//		defer member.Close() // after the server has stopped
//	}
//	backend, err := o.ApplyTo(genericConfig, storage.Config{
//		Scheme:     scheme,
//		Embedded:   member,
//		Namespaced: tenancy.GroupResources(tenancy.NamespacedKinds()),
//		Unreadable: unreadable.NewObjects(),
//	})
//
// A store of a resource consists of these layers, the outermost first:
//
//	removingStore, watchWrappingStore, awaitingStore, nothingStore, interpretedStore
//	with a watch cache: scopedStore, atomicStore, the library's cache, progressRequestingStore
//	charge.quotaStore, unreadable.Store, the store of the library
//
// and its client of etcd of these:
//
//	awaitingClient, transaction, charge, ambiguousWriteRetrier, fence; pagedKV, observedKV
//
// Keys are PREFIX/GROUP/RESOURCE/NAMESPACE/NAME (without NAMESPACE for
// cluster-scoped resources), with /registry as the default prefix.
package storage
