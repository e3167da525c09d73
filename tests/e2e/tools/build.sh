#!/bin/sh
# Builds what the end-to-end suite runs: tests/e2e/tools/build.sh [name...]
set -eu
cd "$(dirname "$0")/../.." && exec "${PYTHON:-python3}" -m e2e.tools.build "$@"
