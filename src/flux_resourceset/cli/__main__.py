"""`python -m flux_resourceset.cli` is flux-resourceset-cli."""

import sys

from flux_resourceset.cli import main

sys.exit(main())
