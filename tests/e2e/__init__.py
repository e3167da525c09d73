"""The end-to-end suite: the real Flux Operator and Flux controllers against a real Kubernetes API server."""
