#!/usr/bin/env bash
# Makes the kind cluster, unless it is there.
# shellcheck source=deploy/kind/steps.sh
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

step "The kind cluster $CLUSTER"
if kind get clusters 2>/dev/null | grep -qx "$CLUSTER"; then
  printf '    it is there already; make kind-delete to begin anew\n'
else
  kind create cluster --config deploy/kind/cluster.yaml --wait 180s ||
    fail "kind could not make the cluster; its lines above say why"
fi
kube get nodes >/dev/null || fail "the API server of kind-$CLUSTER does not answer"
printf '    kubectl --context kind-%s answers\n' "$CLUSTER"
