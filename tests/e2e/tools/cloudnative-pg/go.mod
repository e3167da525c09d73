module flux-resourceset.test/e2e/cloudnative-pg

go 1.24.1

require github.com/cloudnative-pg/cloudnative-pg v1.27.0 // indirect
