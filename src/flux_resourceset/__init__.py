"""One API that is the source of truth of what every Kubernetes cluster of a fleet runs."""

__version__ = "0.1.0"
