"""The templates of Flux Operator, rendered without it.

An engine of our own, because the one on PyPI (gotpl 0.1.0, pure Python, 5 packages, 6 MB, "Planning") cannot parse
`inputs.name`, a field of a function's result, which is how every ResourceSet reads its data. This one knows the part
of Go's text/template and slim-sprig that manifests use, reaches nothing but the inputs, and refuses what it does not
know instead of guessing. tests/render compares it with the flux-operator CLI, object by object.
"""

from __future__ import annotations

from flux_resourceset.render.failures import TemplateError
from flux_resourceset.render.resourcesets import Manifest, resourceset

__all__ = ["Manifest", "TemplateError", "resourceset"]
