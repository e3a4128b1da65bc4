// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	certutil "k8s.io/client-go/util/cert"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/delegation"
)

func (x *examination) checkFrontProxyConfiguration(ctx context.Context) Finding {
	if x.deployment.lastFlag(delegation.FrontProxyCAKey) != "" {
		return ok("not checked, because the server has its own --%s", delegation.FrontProxyCAKey)
	}
	where := delegation.ConfigMapNamespace + "/" + delegation.ConfigMapName
	config, err := x.client.CoreV1().ConfigMaps(delegation.ConfigMapNamespace).Get(ctx, delegation.ConfigMapName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fault(fmt.Sprintf("the ConfigMap %s does not exist", where),
			"kube-apiserver writes it: set --client-ca-file and the flags --requestheader-* of kube-apiserver, and check its log")
	case err != nil:
		return skipped("cannot read the ConfigMap %s: %s", where, oneLine(err.Error()))
	}
	if problem := requestHeaderProblem(config.Data, x.now()); problem != "" {
		return fault(fmt.Sprintf("the ConfigMap %s %s", where, problem),
			"run kube-apiserver with --requestheader-client-ca-file, --requestheader-username-headers=X-Remote-User, "+
				"--requestheader-group-headers=X-Remote-Group, --requestheader-extra-headers-prefix=X-Remote-Extra-, "+
				"--proxy-client-cert-file and --proxy-client-key-file; it writes the ConfigMap from them")
	}
	return ok("the ConfigMap %s has what the server needs to authenticate kube-apiserver", where)
}

func requestHeaderProblem(data map[string]string, now time.Time) string {
	cas, err := certutil.ParseCertsPEM([]byte(data[delegation.FrontProxyCAKey]))
	switch {
	case data[delegation.FrontProxyCAKey] == "":
		return "has no " + delegation.FrontProxyCAKey
	case err != nil:
		return fmt.Sprintf("has no certificates in %s: %v", delegation.FrontProxyCAKey, err)
	case expired(cas, now):
		return fmt.Sprintf("has only certificates in %s that are expired or not yet valid", delegation.FrontProxyCAKey)
	}
	for _, key := range []string{delegation.UsernameHeadersKey, delegation.GroupHeadersKey} {
		var headers []string
		if err := json.Unmarshal([]byte(data[key]), &headers); err != nil || len(headers) == 0 {
			return "names no headers in " + key
		}
	}
	return ""
}

const groupPath = "/apis/" + v1.GroupName + "/v1"

// checkFrontProxy requests discovery, which every authenticated user can read and
// which does not need etcd.
func (x *examination) checkFrontProxy(ctx context.Context) Finding {
	condition := x.apiService.available()
	if condition == nil {
		return skipped("the aggregator has not checked the APIService yet")
	}
	if failure := failureOf(*condition); failure != nil && failure.unauthenticated {
		return x.unauthenticated("the server does not authenticate kube-apiserver: " + oneLine(condition.Message))
	}
	if condition.Status != metav1.ConditionTrue {
		return skipped("no request reaches the server while the APIService is not available")
	}
	a, err := x.raw.get(ctx, groupPath, nil)
	if err != nil {
		return fault("discovery of the group: "+oneLine(err.Error()), "see the checks APIService available and pods")
	}
	switch a.status {
	case http.StatusOK:
		a.clock.name = "the server"
		x.clocks = append(x.clocks, a.clock)
		return ok("the server authenticates users")
	case http.StatusUnauthorized:
		return x.unauthenticated("the server does not authenticate the user: " + a.String())
	case http.StatusForbidden:
		asked := userIn(a)
		if asked == user.Anonymous && x.user != user.Anonymous || x.user != "" && asked != "" && asked != x.user {
			return x.unauthenticated(fmt.Sprintf("requests of %s arrive as requests of %s", x.who(), asked))
		}
		return skipped("%s cannot discover the group: %s", x.who(), a)
	case http.StatusTooManyRequests:
		return skipped("the server is busy: %s", a)
	}
	return fault("discovery of the group: "+a.String(), "see the checks caBundle, delegator binding and pods; check the log of the server")
}

func (x *examination) who() string {
	if x.user == "" {
		return "the user of the kubeconfig"
	}
	return x.user
}

// unauthenticated returns the fault of a server that does not trust the front-proxy
// headers.
func (x *examination) unauthenticated(problem string) Finding {
	var own []string
	for _, name := range []string{"requestheader-client-ca-file", "requestheader-allowed-names", "requestheader-username-headers", "requestheader-group-headers", "authentication-skip-lookup"} {
		if x.deployment.lastFlag(name) != "" {
			own = append(own, "--"+name)
		}
	}
	if len(own) > 0 {
		return fault(problem, fmt.Sprintf("remove %s from the arguments of borough-apiserver: the server then reads the correct values from the cluster", strings.Join(own, ", ")))
	}
	return fault(problem, fmt.Sprintf("the certificate in --proxy-client-cert-file of kube-apiserver must be signed by the CA, and have one of the names, "+
		"in the ConfigMap %s/%s; the server reads the ConfigMap if it has the reader binding and no flags --requestheader-*",
		delegation.ConfigMapNamespace, delegation.ConfigMapName))
}
