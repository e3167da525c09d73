module flux-resourceset.test/e2e/external-secrets

go 1.25.6

require github.com/external-secrets/external-secrets v1.3.2
