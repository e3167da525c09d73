#!/usr/bin/env bash
# Names every missing tool before anything starts: preflight.sh TOOL… (docker: its daemon, too).
# shellcheck source=deploy/kind/steps.sh
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

need "$@"
for tool in "$@"; do
  if [[ $tool == docker ]]; then need_docker; fi
done
