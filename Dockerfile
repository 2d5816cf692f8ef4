# gale-rls in an image of nothing else: a static binary, and the certificate
# authorities for TLS. It writes nothing, so it runs with a read-only root.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# /bin/ratelimit is where deployments of envoyproxy/ratelimit look.
RUN CGO_ENABLED=0 go build -trimpath -ldflags=-s -o /out/gale-rls ./cmd/gale-rls \
 && ln -s gale-rls /out/ratelimit

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/ /bin/
USER 65534:65534
EXPOSE 8080 8081 6070
ENTRYPOINT ["/bin/gale-rls"]
