# make -f docker.Makefile [BASE=debian:13-slim] [PYTHON_VERSION=3.13] [EXTRAS=examples] [IMAGE=ptcore] [BUILDER=docker]
#
# BASE is an image of Debian or of a system made from it, with Python of PYTHON_VERSION among its packages; EXTRAS are
# those of pyproject.toml, by commas. A loader whose workers use /dev/shm needs `--shm-size=8g` or `--ipc=host`.
BASE = docker.io/library/debian:13-slim
PYTHON_VERSION = 3.13
EXTRAS = examples
IMAGE = ptcore
BUILDER = docker
OPTIONS =

image:
	$(BUILDER) build $(OPTIONS) --tag $(IMAGE) --build-arg BASE=$(BASE) --build-arg PYTHON_VERSION=$(PYTHON_VERSION) \
	    --build-arg EXTRAS=$(EXTRAS) .

digits: image
	$(BUILDER) run --rm $(IMAGE) ptcore-examples digits

.PHONY: image digits
