# The paths of the cluster's Vault, and who of the cluster may read which: nobody but a tenant reads a tenant's secrets.
# Vault itself and the External Secrets Operator are installed with the cluster, before this.

resource "vault_mount" "secret" {
  path        = "secret"
  type        = "kv"
  options     = { version = "2" }
  description = "Secrets of the tenants of ${var.cluster}, at <tenant>/${var.environment}"
}

# Vault asks the cluster whether a token is one of its own, as this account.
resource "kubernetes_service_account_v1" "vault_reviewer" {
  metadata {
    name      = "vault-reviewer"
    namespace = "kube-system"
  }
}

resource "kubernetes_secret_v1" "vault_reviewer" {
  metadata {
    name        = "vault-reviewer"
    namespace   = "kube-system"
    annotations = { "kubernetes.io/service-account.name" = kubernetes_service_account_v1.vault_reviewer.metadata[0].name }
  }
  type                           = "kubernetes.io/service-account-token"
  wait_for_service_account_token = true
}

resource "kubernetes_cluster_role_binding_v1" "vault_reviewer" {
  metadata {
    name = "vault-reviewer"
  }
  role_ref {
    api_group = "rbac.authorization.k8s.io"
    kind      = "ClusterRole"
    name      = "system:auth-delegator"
  }
  subject {
    kind      = "ServiceAccount"
    name      = kubernetes_service_account_v1.vault_reviewer.metadata[0].name
    namespace = "kube-system"
  }
}

resource "vault_auth_backend" "kubernetes" {
  type = "kubernetes"
}

resource "vault_kubernetes_auth_backend_config" "cluster" {
  backend            = vault_auth_backend.kubernetes.path
  kubernetes_host    = var.kubernetes_host
  kubernetes_ca_cert = var.kubernetes_ca_cert
  token_reviewer_jwt = kubernetes_secret_v1.vault_reviewer.data["token"]
}

resource "vault_policy" "tenant" {
  for_each = local.tenants

  name   = "tenant-${each.key}"
  policy = <<-EOT
    path "${vault_mount.secret.path}/data/${each.key}/${var.environment}" {
      capabilities = ["read"]
    }
  EOT
}

resource "vault_kubernetes_auth_backend_role" "tenant" {
  for_each = local.tenants

  backend                          = vault_auth_backend.kubernetes.path
  role_name                        = each.key
  bound_service_account_names      = ["tenant"]
  bound_service_account_namespaces = [each.value]
  token_policies                   = [vault_policy.tenant[each.key].name]
  token_ttl                        = 600
}
