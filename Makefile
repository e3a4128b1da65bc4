# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# All modules are built with the release of Go that go.mod names, which go downloads if it is
# another one.
export GOTOOLCHAIN := $(shell sed -n 's/^toolchain //p' go.mod)

# The port that `make run` serves on.
PORT ?= 6443

# RACE=1 turns the race detector on in tests, which needs a C compiler. With make verify,
# the checks use what is compiled for such tests.
RACE ?= 0

.DEFAULT_GOAL := help

# Also with -j: some targets write what others read, and most use all processors.
.NOTPARALLEL:

##@ Use

.PHONY: build
build: ## Build the binaries into bin/.
	hack/build.sh

.PHONY: run
run: build ## Run both, with their state in .borough/ (PORT=6443).
	go build -o .cache/tools/run ./hack/run
	exec .cache/tools/run --bin bin --state .borough --port $(PORT)

.PHONY: kubectl
kubectl: ## Build bin/kubectl, if you have no kubectl.
	hack/kubectl.sh

.PHONY: images
images: ## Build the container images into bin/images, or push them (TAG=latest REGISTRY=).
	hack/images.sh

# Compiles everything with other flags than make build, so make verify does not run it.
.PHONY: verify-images
verify-images: ## Check that the images of a commit can be reproduced.
	hack/verify-images.sh

.PHONY: release
release: ## Make what a release publishes into bin/release (VERSION=v0.1.0).
	hack/release.sh "$(VERSION)" "bin/release/$(VERSION)"

.PHONY: clean
clean: ## Remove build output; keeps the data in .borough/.
	rm -rf bin .cache

##@ Develop

.PHONY: test
test: kubectl ## Run the unit, storage and end-to-end tests (RACE=0).
	RACE=$(RACE) hack/test.sh

.PHONY: test-kubernetes
test-kubernetes: ## Run the tests that need a Kubernetes control plane (RACE=0).
	RACE=$(RACE) hack/test-kubernetes.sh

# Only from the command line: the variable of the shell names another cluster.
.PHONY: test-cluster
test-cluster: ## Try the deployment in a cluster of its own (KUBECONFIG=FILE).
	hack/test-cluster.sh $(if $(filter command,$(origin KUBECONFIG)),'$(KUBECONFIG)')

.PHONY: storm
storm: ## Look for orphans for 200 rounds, and 200 with faults (RACE=0).
	RACE=$(RACE) hack/storm.sh

.PHONY: visibility
visibility: ## Compare what users see of the Namespaces with their rights for 1,000 rounds (RACE=0).
	RACE=$(RACE) hack/visibility.sh

.PHONY: differential
differential: ## Send the same requests to a kube-apiserver and to Borough.
	hack/differential.sh

.PHONY: attack
attack: ## Send a running server hostile requests (ATTACK=-short).
	hack/attack.sh $(ATTACK)

.PHONY: cost
cost: ## Count what the longest lists cost a server (COST=-short).
	hack/cost.sh $(COST)

.PHONY: fuzz
fuzz: ## Run the fuzz targets (FUZZ=1000, a multiple of the inputs).
	hack/fuzz.sh $(FUZZ)

.PHONY: bench
bench: ## Compare with Kubernetes into docs/benchmarks.md (BENCH=-short).
	hack/bench.sh $(BENCH)

.PHONY: profile
profile: ## Run the benchmark to update hack/server.pgo, which releases are optimized with.
	hack/profile.sh

.PHONY: upstream
upstream: ## Name what a release of Kubernetes changes about Pods (UPSTREAM='-version v1.N.P').
	go run ./hack/upstream $(UPSTREAM)

checks := codegen docs tidy format headers scripts workflows words vet lint manifests upstream

.PHONY: verify
verify: $(checks:%=verify-%) ## Run every check that a change must pass, except the tests.

.PHONY: $(checks:%=verify-%)
$(checks:%=verify-%): verify-%:
	RACE=$(RACE) hack/verify-$*.sh

.PHONY: update
update: update-codegen update-format update-docs update-manifests update-tidy ## Regenerate everything that verify compares.

.PHONY: update-codegen update-format update-docs update-manifests update-tidy
update-codegen update-format update-docs update-manifests update-tidy: update-%:
	hack/update-$*.sh

verify-docs update-docs: build
verify-manifests: kubectl

.PHONY: help
help: ## Show this.
	@awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-15s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nmake verify runs: %s\n' '$(checks:%=verify-%)'
