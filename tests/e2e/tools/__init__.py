"""The upstream programs that the end-to-end suite runs: pinned, and built from the Go module registry."""
