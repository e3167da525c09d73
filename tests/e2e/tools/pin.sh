#!/bin/sh
# Pins the upstreams again after a version in upstreams.py has changed: tests/e2e/tools/pin.sh [directory...]
set -eu
cd "$(dirname "$0")/../.." && exec "${PYTHON:-python3}" -m e2e.tools.pin "$@"
