variable "environment" {
  description = "Environment of the cluster: a top directory of this repository."
  type        = string
}

variable "cluster" {
  description = "Name of the cluster: a directory below its environment, and a context of the kubeconfig."
  type        = string
}

variable "kubeconfig" {
  description = "The kubeconfig that reaches the cluster."
  type        = string
  default     = "~/.kube/config"
}

variable "kubernetes_host" {
  description = "The API server of the cluster, as Vault reaches it."
  type        = string
}

variable "kubernetes_ca_cert" {
  description = "The certificate authority of that API server, in PEM."
  type        = string
}

locals {
  folder   = "${path.module}/../${var.environment}/${var.cluster}"
  instance = yamldecode(file("${local.folder}/flux-instance.yaml"))

  # The tenants that Git has for this cluster, with their namespaces: a new one needs an apply, and no change here.
  tenants = {
    for file in fileset(local.folder, "tenants/*/input.yaml") :
    basename(dirname(file)) => yamldecode(file("${local.folder}/${file}")).metadata.namespace
  }
}
