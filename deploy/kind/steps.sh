# What the scripts of the kind demo share: names, pinned versions, steps, checks and waits. Sourced, not run.
# shellcheck shell=bash disable=SC2034  # the names are for the scripts
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

CLUSTER=flux-demo
IMAGE=flux-resourceset:local
OPERATOR=v0.58.1 # the release that tests/e2e runs
OPERATOR_URL="https://github.com/controlplaneio-fluxcd/flux-operator/releases/download/$OPERATOR/install.yaml"
VIEWS=(platform-components namespaces rolebindings)
NAMESPACES=(cert-manager traefik podinfo)

STARTED=$SECONDS
NUMBER=0

fail() {
  printf 'kind demo: %s\n' "$*" >&2
  exit 2
}

step() {
  NUMBER=$((NUMBER + 1))
  printf '\n[%d] %s (%d s)\n' "$NUMBER" "$*" $((SECONDS - STARTED))
}

# Every tool at once, so that nobody installs one only to hear of the next.
need() {
  local tool missing=()
  for tool in "$@"; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  if ((${#missing[@]})); then
    fail "missing: ${missing[*]}; docs/demo.md says where each comes from. Without Docker there is make demo"
  fi
}

need_docker() {
  docker info >/dev/null 2>&1 || fail "docker is installed, but its daemon does not answer; start it, and see docker info"
}

need_cluster() {
  kind get clusters 2>/dev/null | grep -qx "$CLUSTER" || fail "there is no kind cluster $CLUSTER; make kind-create makes it"
}

# Always this cluster, whichever context is the current one.
kube() {
  kubectl --context "kind-$CLUSTER" --namespace flux-system "$@"
}

# wait_until SECONDS WHAT COMMAND…: try every two seconds; the time-out says what to look at
wait_until() {
  local limit=$1 what=$2 deadline=$((SECONDS + $1))
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || fail "$what: not within $limit s. Look with: kubectl --context kind-$CLUSTER -n flux-system get events --sort-by=.lastTimestamp"
    sleep 2
  done
}

exists() {
  kube get "$@" >/dev/null 2>&1
}

# ready SECONDS RESOURCE…: made by somebody else, so it may not exist yet
ready() {
  local limit=$1 resource
  shift
  for resource in "$@"; do
    wait_until "$limit" "$resource does not exist" exists "$resource"
    kube wait "$resource" --for=condition=Ready --timeout="${limit}s" >/dev/null ||
      fail "$resource is not ready within $limit s. Look with: kubectl --context kind-$CLUSTER -n flux-system describe $resource"
    printf '    %s is ready\n' "$resource"
  done
}

rolled_out() {
  local limit=$1 name
  shift
  for name in "$@"; do
    kube rollout status "deployment/$name" --timeout="${limit}s" >/dev/null ||
      fail "deployment/$name is not available within $limit s. Look with: kubectl --context kind-$CLUSTER -n flux-system describe pods -l app=$name"
    printf '    deployment/%s is available\n' "$name"
  done
}

# What Flux takes as "now"; a new value is all that counts.
poll_now() {
  local view=$1
  kube annotate resourcesetinputprovider "$view" --overwrite reconcile.fluxcd.io/requestedAt="$(date -u +%FT%TZ)" >/dev/null
  kube annotate resourceset "$view" --overwrite reconcile.fluxcd.io/requestedAt="$(date -u +%FT%TZ)" >/dev/null
}
