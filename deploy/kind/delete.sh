#!/usr/bin/env bash
# Takes the kind cluster away, and with it all that the demo has put there. The image and the project stay.
# shellcheck source=deploy/kind/steps.sh
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

if kind get clusters 2>/dev/null | grep -qx "$CLUSTER"; then
  kind delete cluster --name "$CLUSTER"
else
  printf 'there is no kind cluster %s\n' "$CLUSTER"
fi
