terraform {
  required_version = ">= 1.9"

  required_providers {
    helm = {
      source  = "hashicorp/helm"
      version = "3.0.2"
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = "2.38.0"
    }
    vault = {
      source  = "hashicorp/vault"
      version = "5.3.0"
    }
  }
}

# Each cluster has a Vault of its own; its token comes from VAULT_TOKEN.
provider "vault" {
  address = "https://vault.${var.cluster}.acme.example:8200"
}

provider "kubernetes" {
  config_path    = var.kubeconfig
  config_context = var.cluster
}

provider "helm" {
  kubernetes = {
    config_path    = var.kubeconfig
    config_context = var.cluster
  }
}
