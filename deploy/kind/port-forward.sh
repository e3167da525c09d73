#!/usr/bin/env bash
# The API of operators on http://127.0.0.1:8080, until Ctrl-C.
# shellcheck source=deploy/kind/steps.sh
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

exists service/flux-api-crud || fail "kind-$CLUSTER has no Service flux-api-crud; make kind-demo brings it"
cat <<END
For another terminal (the demo has one token for reading and writing):
  export FLUX_API_URL=http://127.0.0.1:8080
  export FLUX_API_TOKEN="\$(kubectl -n flux-system get secret internal-api-token -o jsonpath='{.data.token}' | base64 -d)"
  export FLUX_API_WRITE_TOKEN="\$FLUX_API_TOKEN"

END
kube port-forward --address 127.0.0.1 service/flux-api-crud 8080:8080
