# An image with ptcore, built from this source:  make -f docker.Makefile
ARG BASE=docker.io/library/debian:13-slim

# -- the build: compilers stay here ------------------------------------------------------------------------------------
FROM ${BASE} AS build
ARG PYTHON_VERSION=3.13
ARG EXTRAS=examples
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# Versions are those of the base, which is named by the one who builds.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --no-install-recommends -y ccache g++ "python${PYTHON_VERSION}-dev" "python${PYTHON_VERSION}-venv" \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
COPY . /src
# What the compiler made is kept on the machine that builds, so that the next image of nearly the same source is quick.
RUN --mount=type=cache,target=/ccache "python${PYTHON_VERSION}" -m venv /opt/ptcore \
    && CCACHE_DIR=/ccache /opt/ptcore/bin/pip install --no-cache-dir "/src[${EXTRAS}]"

# -- the image ---------------------------------------------------------------------------------------------------------
FROM ${BASE}
ARG PYTHON_VERSION=3.13
LABEL org.opencontainers.image.title="ptcore" \
      org.opencontainers.image.description="Tensors, autograd and neural networks for the SciPy stack" \
      org.opencontainers.image.licenses="BSD-3-Clause"
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --no-install-recommends -y "python${PYTHON_VERSION}" \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
    && useradd --create-home --uid 1000 ptcore
COPY --from=build /opt/ptcore /opt/ptcore
ENV PATH=/opt/ptcore/bin:$PATH
USER 1000
WORKDIR /home/ptcore
CMD ["python"]
