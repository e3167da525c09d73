# Flux Operator, and the FluxInstance as it stands beside the cluster's directories: its sync takes over from here.

resource "helm_release" "flux_operator" {
  name             = "flux-operator"
  namespace        = "flux-system"
  create_namespace = true
  repository       = "oci://ghcr.io/controlplaneio-fluxcd/charts"
  chart            = "flux-operator"
  version          = "0.58.1"
}

resource "helm_release" "flux_instance" {
  name       = local.instance.metadata.name
  namespace  = helm_release.flux_operator.namespace
  repository = "oci://ghcr.io/controlplaneio-fluxcd/charts"
  chart      = "flux-instance"
  version    = "0.58.1"
  values     = [yamlencode({ instance = local.instance.spec })]
}
