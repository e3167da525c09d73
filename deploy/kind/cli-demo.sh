#!/usr/bin/env bash
# The command line against the API in the kind cluster: a new namespace, then podinfo patched, each followed into the cluster.
# shellcheck source=deploy/kind/steps.sh
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

ID=demo-cluster-01
MESSAGE="Hello from CLI patch"
COLOR="#3b82f6"

cli() {
  .venv/bin/flux-resourceset-cli "$@"
}

values() { # what the ConfigMap of the values holds
  kube get configmap "values-podinfo-$ID" \
    -o jsonpath='replicas={.data.replicaCount} color={.data.ui\.color} message={.data.ui\.message}{"\n"}'
}

deployed() { # what the Deployment has
  local env='.spec.template.spec.containers[0].env'
  kube get deployment podinfo --namespace podinfo -o jsonpath="replicas={.spec.replicas}\
 color={${env}[?(@.name==\"PODINFO_UI_COLOR\")].value} message={${env}[?(@.name==\"PODINFO_UI_MESSAGE\")].value}{\"\\n\"}"
}

shows() { # shows COMMAND: the three new values
  [[ $("$1") == "replicas=3 color=$COLOR message=$MESSAGE" ]]
}

step "The API"
export FLUX_API_URL=${FLUX_API_URL:-http://127.0.0.1:8080}
curl --silent --fail --max-time 5 --output /dev/null "$FLUX_API_URL/ready" ||
  fail "$FLUX_API_URL does not answer; run make cli-demo-port-forward in another terminal"
exists secret/internal-api-token || fail "kind-$CLUSTER has no Secret internal-api-token; make kind-demo brings it"
FLUX_API_TOKEN=$(kube get secret internal-api-token -o jsonpath='{.data.token}' | base64 -d)
export FLUX_API_TOKEN FLUX_API_WRITE_TOKEN=$FLUX_API_TOKEN

step "Clusters and namespaces"
cli cluster list
cli namespace list

step "A new namespace, demo-runtime"
cli demo add-namespace $ID demo-runtime --label app=demo-runtime --reason "make cli-demo"
poll_now namespaces
wait_until 60 "namespace demo-runtime does not exist" exists namespace/demo-runtime
kube get namespace demo-runtime --show-labels

step "podinfo as it is"
ready 300 helmrelease/platform-podinfo
values
deployed

step "podinfo patched"
cli demo patch-component $ID podinfo --set replicaCount=3 --set ui.message="$MESSAGE" --set ui.color="$COLOR"
poll_now platform-components
wait_until 60 "the values of podinfo did not change" shows values
values

step "Helm upgrades"
flux --context "kind-$CLUSTER" reconcile helmrelease platform-podinfo --namespace flux-system --with-source
ready 300 helmrelease/platform-podinfo
wait_until 120 "the Deployment of podinfo did not change" shows deployed
deployed

cat <<END

Done. To see it:
  kubectl -n podinfo port-forward svc/podinfo 9898:9898    # then http://127.0.0.1:9898
  make kind-delete                                         # when you are finished
END
