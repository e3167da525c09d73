"""`python -m flux_resourceset.cli` is flux-resourceset-cli."""

from flux_resourceset.cli import main

main()
