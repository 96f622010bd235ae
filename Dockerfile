# The varve binary in a small image. DuckDB is linked with cgo, so both stages stand on the same Debian release.
FROM golang:1.26.8-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=1 go build -trimpath -o /out/varve ./cmd/varve

FROM debian:13.1-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates libstdc++6 tzdata \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home varve \
    && install -d -o varve /project
COPY --from=build /out/varve /usr/local/bin/varve
USER varve
WORKDIR /project
ENTRYPOINT ["varve"]
