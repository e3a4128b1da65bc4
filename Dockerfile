# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# The image of each binary holds nothing but the binary, and runs as a user
# without rights:
#   docker build --target borough-apiserver .
#   docker build --target borough-controller-manager .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# hack/version.sh prints this; hack/images.sh hands it in.
ARG LDFLAGS=""
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w ${LDFLAGS}" -o /out/ ./cmd/... \
    && mkdir /out/data && chmod 0700 /out/data

FROM scratch AS borough-apiserver
COPY --from=build /out/borough-apiserver /
# For --data-dir, which a volume should be mounted over.
COPY --from=build --chown=65532:65532 /out/data /var/lib/borough
USER 65532:65532
WORKDIR /var/lib/borough
ENTRYPOINT ["/borough-apiserver"]

FROM scratch AS borough-controller-manager
COPY --from=build /out/borough-controller-manager /
USER 65532:65532
ENTRYPOINT ["/borough-controller-manager"]
