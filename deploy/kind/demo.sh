#!/usr/bin/env bash
# From an empty kind cluster to one that phones home: Flux, the API with the demo data, providers, ResourceSets.
# Every step is checked, and can be repeated.
# shellcheck source=deploy/kind/steps.sh
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

need_cluster

step "The image $IMAGE into the cluster"
kind load docker-image "$IMAGE" --name "$CLUSTER" || fail "$IMAGE could not be loaded; make docker-build makes it"

step "Flux Operator $OPERATOR"
kube apply --server-side --force-conflicts -f "$OPERATOR_URL" >/dev/null ||
  fail "$OPERATOR_URL could not be applied; is it reachable from here?"
rolled_out 300 flux-operator

step "Flux"
kube apply -k deploy/flux
ready 600 fluxinstance/flux
rolled_out 120 source-controller kustomize-controller helm-controller notification-controller

step "The token and the demo data"
if ! exists secret/internal-api-token; then
  # one token for reading and writing, in the demo only; through a pipe, so that no process list shows it
  head -c 24 /dev/urandom | base64 | tr -dc 'A-Za-z0-9' |
    kube create secret generic internal-api-token --from-file=token=/dev/stdin
fi
kube create configmap flux-api-seed-data --from-file=seed.json=data/seed.json --dry-run=client -o yaml | kube apply -f -
[[ $(kube get configmap flux-api-seed-data -o jsonpath='{.data.seed\.json}') == "$(<data/seed.json)" ]] ||
  fail "the ConfigMap flux-api-seed-data does not hold data/seed.json"

step "The API: flux-api-crud writes, flux-api-read answers Flux"
again=$(exists deployment/flux-api-crud && echo yes || echo no)
kube apply -k deploy/server/overlays/demo
if [[ $again == yes ]]; then
  kube rollout restart deployment/flux-api-crud deployment/flux-api-read >/dev/null # the image has kept its name
fi
rolled_out 180 flux-api-crud flux-api-read
# The chart leaves its CRDs out unless it is told, and then never becomes ready; the seed has no patch for it.
# shellcheck disable=SC2016  # the token is the pod's
kube exec deployment/flux-api-crud -- sh -c 'FLUX_API_URL=http://127.0.0.1:8080 FLUX_API_TOKEN=$AUTH_TOKEN \
  FLUX_API_WRITE_TOKEN=$AUTH_TOKEN flux-resourceset-cli component patch cert-manager --cluster demo-cluster-01 \
  --set crds.enabled=true --reason "cert-manager needs its CRDs" --output name' ||
  fail "the first patch was refused; see kubectl --context kind-$CLUSTER -n flux-system logs deployment/flux-api-crud"

step "Providers and ResourceSets"
kube apply -k deploy/cluster/overlays/demo
ready 120 "${VIEWS[@]/#/resourcesetinputprovider/}"
ready 120 "${VIEWS[@]/#/resourceset/}"

step "What came of it"
for name in "${NAMESPACES[@]}"; do
  wait_until 60 "namespace $name does not exist" exists "namespace/$name"
done
exists clusterrolebinding/platform-admins clusterrolebinding/dev-readers || fail "a ClusterRoleBinding is missing"
printf '    3 namespaces and 2 ClusterRoleBindings exist\n'
ready 600 "${NAMESPACES[@]/#/helmrelease/platform-}"

kube get resourcesetinputproviders,resourcesets,helmreleases
cat <<END

The cluster phones home. Next, in two terminals:
  make cli-demo-port-forward
  make cli-demo
END
