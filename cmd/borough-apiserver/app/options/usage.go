// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/borough-io/borough/pkg/admission/clusterplugins"
)

// usages replace the usages of flags of the library that do not fit this server.
var usages = map[string]string{
	"admission-control-config-file": "File with admission control configuration. The server refuses sections of plugins other than the webhooks and policies of a cluster.",
	"authentication-kubeconfig":     "Kubeconfig of the cluster for TokenReviews, and for reading how to authenticate kube-apiserver. If empty, that of --kubeconfig.",
	"authentication-tolerate-lookup-failure": "" +
		"If true, the server is ready although missing authentication configuration has not been looked up in the cluster yet. " +
		"Until it is, requests that kube-apiserver forwards are treated as anonymous.",
	"authorization-always-allow-paths": "HTTP paths that all users may use, also those who are not authenticated.",
	"authorization-kubeconfig":         "Kubeconfig of the cluster for SubjectAccessReviews. If empty, that of --kubeconfig.",
	"cert-dir":                         "Directory for the self-signed certificate of --tls-cert-file, in apiserver.crt, and its key, in apiserver.key. The server creates both unless both exist; it renames one without the other to *.old. If empty, the certificate is only in memory.",
	"debug-socket-path":                "Unix domain socket on which to serve profiles and the log level, without authentication and authorization. A socket that exists is replaced; if another file exists, the server does not start.",
	"encryption-provider-config":       "File with the encryption configuration: which resources are encrypted in etcd, and with which keys.",
	"etcd-compaction-interval":         "Interval at which the history of etcd is compacted. It is compacted earlier while more than half of the space quota of etcd is in use. 0 turns this off, which only an etcd of --etcd-servers allows.",
	"etcd-db-metric-poll-interval":     "Has no effect: the size of the database is read when the metrics are.",
	"etcd-servers-overrides": "" +
		"Other etcd servers for a resource, comma separated: group/resource#servers, where servers are URLs, semicolon separated. " +
		"All resources that the server stores must be on the same etcd servers as the Namespaces, otherwise it does not start.",
	"external-hostname": "Host name or IP address of the server in URLs that it returns. With --standalone, its certificate is also valid for it.",
	"kubeconfig":        "Kubeconfig of the cluster that the server runs behind. If empty, the server uses the service account of its Pod.",
	"secure-port":       "Port on which to serve HTTPS with authentication and authorization. It must not be 0.",
	"tls-cert-file": "" +
		"File with the certificate for HTTPS, followed by those of intermediate CAs. " +
		"Without it, the server uses the certificate in --serving-cert-secret or, if that is empty, creates a self-signed one for localhost when it starts. " +
		"With --standalone, it creates one in pki/ of --data-dir instead.",
}

// standaloneUsages are appended to the usages of flags whose default or effect differs
// with --standalone.
var standaloneUsages = map[string]string{
	"advertise-address":                       "the certificate of the server is also valid for it.",
	"bind-address":                            "the default is 127.0.0.1.",
	"client-ca-file":                          "these are in addition to the CA in --data-dir.",
	"disable-admission-plugins":               noClusterPlugins,
	"enable-admission-plugins":                noClusterPlugins,
	"enable-garbage-collector":                "the default is false: there is no garbage collector.",
	"enable-priority-and-fairness":            "the default is false, and true cannot be used.",
	"shutdown-watch-termination-grace-period": fmt.Sprintf("the default is %s.", standaloneWatchGrace),
}

// noClusterPlugins is about plugins that the usages name as enabled by default.
var noClusterPlugins = fmt.Sprintf("%s are off and cannot be enabled: they are configured by objects of a cluster.", strings.Join(clusterplugins.Names(), ", "))

// setUsage changes the usage of a flag as above.
func setUsage(flag *pflag.Flag) {
	if usage, ok := usages[flag.Name]; ok {
		flag.Usage = usage
	}
	if usage, ok := standaloneUsages[flag.Name]; ok {
		flag.Usage = strings.TrimRight(flag.Usage, ".") + ". With --standalone, " + usage
	}
}
