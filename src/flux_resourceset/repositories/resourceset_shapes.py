"""Whether a ResourceSet has the shape of one, so that whoever renders it meets no list where a map must be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_MAP, _LIST, _TEXT = ("a map", dict), ("a list", list), ("text", str)


def fault(manifest: Mapping[str, Any]) -> str | None:
    """The first thing that is no such thing as it must be; what may be missing is not wrong if it is."""
    return next(_faults(manifest), None)


def _faults(manifest: Mapping[str, Any]) -> Iterator[str]:
    metadata, spec = manifest.get("metadata"), manifest.get("spec")
    for name, value in (("metadata", metadata), ("spec", spec)):
        if not isinstance(value, dict):
            yield f"{name} must be a map"
    if not isinstance(spec, dict):
        return
    for name in ("dependsOn", "inputsFrom", "steps"):
        yield from _unlike_maps(f"spec.{name}", spec.get(name))
    common = spec.get("commonMetadata")
    yield from _unlike("spec.commonMetadata", common, _MAP)
    for name in ("labels", "annotations"):
        yield from _unlike(f"spec.commonMetadata.{name}", common.get(name) if isinstance(common, dict) else None, _MAP)
    yield from _unlike_step("spec", spec)
    steps = spec.get("steps")
    for place, step in enumerate(steps if isinstance(steps, list) else ()):
        yield from _unlike_step(f"spec.steps[{place}]", step if isinstance(step, dict) else {})


def _unlike_step(where: str, step: Mapping[str, Any]) -> Iterator[str]:
    yield from _unlike(f"{where}.resourcesTemplate", step.get("resourcesTemplate"), _TEXT)
    yield from _unlike_maps(f"{where}.resources", step.get("resources"))


def _unlike_maps(where: str, value: Any) -> Iterator[str]:
    yield from _unlike(where, value, _LIST)
    for place, each in enumerate(value if isinstance(value, list) else ()):
        if not isinstance(each, dict):
            yield f"{where}[{place}] must be a map"


def _unlike(where: str, value: Any, wanted: tuple[str, type]) -> Iterator[str]:
    words, sort = wanted
    if value is not None and not isinstance(value, sort):
        yield f"{where} must be {words}"
