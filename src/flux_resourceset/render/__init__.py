"""The templates of Flux Operator, rendered without it.

An engine of our own, because the one on PyPI (gotpl 0.1.0, pure Python, 5 packages, 6 MB, "Planning") cannot parse
`inputs.name`, a field of a function's result, which is how every ResourceSet reads its data. This one knows the part
of Go's text/template and slim-sprig that manifests use, reaches nothing but the inputs, and refuses what it does not
know instead of guessing. README.md beside this file has the functions, an example and the limits; tests/render
compares it with the flux-operator CLI, object by object.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flux_resourceset.render.failures import TemplateError
    from flux_resourceset.render.resourcesets import Manifest, resourceset

__all__ = ["Manifest", "TemplateError", "resourceset"]

_MODULES = {"Manifest": "resourcesets", "TemplateError": "failures", "resourceset": "resourcesets"}


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: whoever reads a YAML file wants its bounds from here, and no templates."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
