# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# The port that `make run` serves on.
PORT ?= 6443

# RACE=1 turns the race detector on in tests. It needs a C compiler.
RACE ?= 0

.DEFAULT_GOAL := help

##@ Use

.PHONY: build
build: ## Build the server and the controller into bin/.
	hack/build.sh

.PHONY: run
run: build ## Run both with their state under .borough/ (PORT=6443).
	go build -o .cache/tools/run ./hack/run
	exec .cache/tools/run --bin bin --state .borough --port $(PORT)

.PHONY: kubectl
kubectl: ## Build bin/kubectl, for those who have none.
	hack/kubectl.sh

.PHONY: images
images: ## Build the container images (needs Docker).
	hack/images.sh

.PHONY: clean
clean: ## Remove what the other targets built; keeps the data under .borough/.
	rm -rf bin .cache

##@ Change

.PHONY: test
test: kubectl ## Run all tests, the end-to-end tests too (RACE=0).
	RACE=$(RACE) hack/test.sh

.PHONY: storm
storm: ## Look for orphans for 200 rounds, and as many with faults (RACE=0).
	RACE=$(RACE) hack/storm.sh

.PHONY: differential
differential: ## Send a kube-apiserver and Borough the same requests, thousands.
	hack/differential.sh

.PHONY: bench
bench: ## Compare with Kubernetes into docs/benchmarks.md (BENCH=-short).
	hack/bench.sh $(BENCH)

checks := codegen docs tidy format headers scripts vet lint manifests

.PHONY: verify
verify: $(checks:%=verify-%) ## Check all that a landing must meet, save the tests.

.PHONY: $(checks:%=verify-%)
$(checks:%=verify-%): verify-%:
	hack/verify-$*.sh

.PHONY: update
update: update-codegen update-format update-docs update-tidy ## Bring up to date all that verify compares.

.PHONY: update-codegen update-format update-docs update-tidy
update-codegen update-format update-docs update-tidy: update-%:
	hack/update-$*.sh

verify-docs update-docs: build

.PHONY: help
help: ## Show this.
	@awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-8s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nmake verify is all of: %s\n' '$(checks:%=verify-%)'
