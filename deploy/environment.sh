#!/bin/sh
# The image's environment in /opt/navarch, made in the folder that holds pyproject.toml, src and the lock file: dependencies by their
# hashes, then the package. deploy/Dockerfile and deploy/root-file-system.sh run it, so what tests run is what the image has.
set -eu
python3 -m venv /opt/navarch
/opt/navarch/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.lock
PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
    /opt/navarch/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps .
