// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// load returns where the images are and commands that load them, or "" if they were
// pushed.
func (o options) load() string {
	if o.registry != "" || o.push != "" {
		return ""
	}
	dir := "'" + strings.ReplaceAll(o.out, "'", `'\''`) + "'"
	if len(o.archs) > 1 {
		return fmt.Sprintf("the OCI image layouts are in %s; to push them to REGISTRY:\n"+
			"  for d in %s/*/; do skopeo copy --all \"oci:${d%%/}\" \"docker://REGISTRY/$(basename \"$d\"):%s\"; done", o.out, dir, o.tag)
	}
	text := fmt.Sprintf("the archives are in %s; to load them into Docker, into kind, or on each node into containerd:", o.out)
	for _, command := range []string{"docker load --input", "kind load image-archive", "ctr --namespace=k8s.io images import"} {
		text += fmt.Sprintf("\n  for f in %s/*.tar; do %s \"$f\"; done", dir, command)
	}
	return text
}
