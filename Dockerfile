# The server and its client, without a compiler, a package manager's cache or root.
# Pin the very bytes where you can reach the registry: --build-arg PYTHON=3.13.9-slim-bookworm@sha256:…
ARG PYTHON=3.13.9-slim-bookworm

FROM python:${PYTHON} AS build
WORKDIR /build
RUN python -m venv --without-pip /opt/flux-resourceset
# first what rarely changes, so that a change of the source does not install it again
COPY requirements/runtime.txt requirements/
RUN pip --disable-pip-version-check --no-cache-dir --python /opt/flux-resourceset/bin/python \
        install --require-hashes --only-binary=:all: -r requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip --disable-pip-version-check --no-cache-dir --python /opt/flux-resourceset/bin/python \
        install --no-deps --no-build-isolation .

FROM python:${PYTHON}
LABEL org.opencontainers.image.title="flux-resourceset" \
      org.opencontainers.image.description="The source of truth of what every Kubernetes cluster of a fleet runs" \
      org.opencontainers.image.licenses="Apache-2.0"
# a number, so that Kubernetes can see that it is not root; the manifests name the same
RUN groupadd --gid 10001 flux && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent flux \
    && install --directory --owner=10001 --group=10001 --mode=0700 /var/lib/flux-resourceset
COPY --from=build /opt/flux-resourceset /opt/flux-resourceset
ENV PATH=/opt/flux-resourceset/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    DATABASE_URL=sqlite:///var/lib/flux-resourceset/flux-resourceset.db?mode=rwc
USER 10001:10001
WORKDIR /var/lib/flux-resourceset
VOLUME /var/lib/flux-resourceset
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD \
    ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/health', timeout=2)"]
ENTRYPOINT ["flux-resourceset"]
