# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Each image contains only its binary and runs as an unprivileged user:
#   docker build --target borough-apiserver .
#   docker build --target borough-controller-manager .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The output of hack/version.sh, which hack/images.sh passes.
ARG LDFLAGS=""
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w ${LDFLAGS}" -o /out/ ./cmd/... \
    && mkdir /out/data && chmod 0700 /out/data

FROM scratch AS borough-apiserver
COPY --from=build /out/borough-apiserver /
# The default of --data-dir; mount a volume here.
COPY --from=build --chown=65532:65532 /out/data /var/lib/borough
USER 65532:65532
WORKDIR /var/lib/borough
ENTRYPOINT ["/borough-apiserver"]

FROM scratch AS borough-controller-manager
COPY --from=build /out/borough-controller-manager /
USER 65532:65532
ENTRYPOINT ["/borough-controller-manager"]
