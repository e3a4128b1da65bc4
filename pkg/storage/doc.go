// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage connects the registry to etcd: an external cluster over gRPC,
// or the member embedded in the process, called directly.
//
// It is the API server library's storage, put together here because the library
// offers no place for a client of one's own. Options keep the library's flags,
// and every store that the RESTOptionsGetter makes writes to etcd through the
// fence (package fence), which ties the life of namespaced objects to their
// Namespace's.
//
//	o := storage.NewOptions()
//	o.AddFlags(flags)
//	errs := o.Validate()
//	var member *embedded.Server
//	if o.Embedded() {
//		member, err = embedded.Start(ctx, embedded.Config{Dir: filepath.Join(dataDir, "etcd")})
//		defer member.Close() // after the server has stopped
//	}
//	err = o.ApplyTo(genericConfig, storage.Config{
//		Scheme:     scheme,
//		Embedded:   member,
//		Namespaces: tenancy.Resource("namespaces"),
//		Namespaced: []schema.GroupResource{tenancy.Resource("limitranges"), tenancy.Resource("pods")},
//	})
//
// Keys are PREFIX/GROUP/RESOURCE/NAMESPACE/NAME (without NAMESPACE for
// cluster-scoped resources), with /registry as the default prefix.
package storage
