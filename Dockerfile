# A static binary on nothing: no shell, no package, no root. PostgreSQL is elsewhere,
# so database.url (or PARLEY_DATABASE_URL) must be set. What is a file, such as what
# people attach, is in /data: keep it in a volume. The terminal tool finds no shell
# here; build on a base image with one if the agent is to run commands.
FROM golang:1.27.3 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /parley ./cmd/parley
RUN mkdir /data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /usr/local/go/lib/time/zoneinfo.zip /zoneinfo.zip
COPY --from=build /parley /parley
COPY --from=build --chown=65532:65532 /data /data
ENV ZONEINFO=/zoneinfo.zip HOME=/data
VOLUME /data
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/parley"]
CMD ["serve"]
