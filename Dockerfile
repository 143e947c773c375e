# The image of Tessera, for those who have Docker: docker build -t tessera .
# testbed/images/recipes/tessera.py makes its twin without Docker; a test compares the two.

FROM debian:bookworm-slim AS build
RUN apt-get update \
 && apt-get install --yes --no-install-recommends make python3 python3-pip \
 && rm -rf /var/lib/apt/lists/*
ENV PIP_BREAK_SYSTEM_PACKAGES=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore
WORKDIR /source

# What changes least comes first, so that a changed source file repeats only the last steps.
COPY requirements/runtime.txt requirements/runtime.txt
RUN python3 -m pip install --only-binary :all: --no-deps --require-hashes -r requirements/runtime.txt

# The build backend, pinned and hashed as in the development environment, and kept out of /usr/local.
COPY requirements/dev.txt requirements/dev.txt
RUN awk '/^[a-z]/ { wanted = /^(grpcio|grpcio-tools|hatchling|kubernetes|packaging|pathspec|pluggy|protobuf|setuptools)==/ || \
      /^(tomlkit|trove-classifiers|typing-extensions)==/ } wanted' \
      requirements/dev.txt > requirements/backend.txt \
 && python3 -m pip install --only-binary :all: --no-deps --require-hashes --target /backend -r requirements/backend.txt

# The library that keeps containers inside their limits, for C libraries from 2.17 on.
COPY requirements/native.txt requirements/native.txt
RUN python3 -m pip install --only-binary :all: --no-deps --require-hashes --target /zig -r requirements/native.txt
COPY native native
RUN make -C native OUT=/native CC="PYTHONPATH=/zig python3 -m ziglang cc -target $(uname -m)-linux-gnu.2.17" \
      /native/libtessera.so \
 && install -D -m 755 /native/libtessera.so /usr/local/lib/tessera/libtessera.so

COPY LICENSE README.md build_hook.py build_protocols.py build_schemas.py pyproject.toml ./
COPY src/tessera src/tessera
RUN PYTHONPATH=/backend python3 -m hatchling build -t wheel -d /wheels \
 && python3 -m pip install --no-deps --no-index /wheels/*.whl

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates libstdc++6 python3 \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 65532 tessera \
 && useradd --uid 65532 --gid 65532 --no-create-home --home-dir / --shell /sbin/nologin tessera
COPY --from=build /usr/local /usr/local
ENV LANG=C.UTF-8 \
    PATH=/usr/local/bin:/usr/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
LABEL org.opencontainers.image.title="tessera" \
      org.opencontainers.image.description="Share, schedule, enforce and drive GPUs on Kubernetes or on one machine" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0"
WORKDIR /
USER 65532:65532
ENTRYPOINT ["tessera"]
