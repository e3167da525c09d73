"""Rule image: an image is named by a version other than latest, and by its digest where a rule of the policy asks for it."""

from __future__ import annotations

from flux_resourceset.repositories import findings, images, object_policy
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.lint.reports import shown

RULE = "image"


def of_image(path: str, line: int, field: str, image: str, needs_digest: bool) -> Finding | None:
    """What is wrong with an image that an input or an object names."""
    fault = object_policy.image_fault(image)
    if fault is not None:
        return findings.error(RULE, path, line, f"{field} {shown(image)} {fault}")
    if images.reference(image) is not None:
        return None
    finding = findings.error(RULE, path, line, f"{field} {shown(image)} is not pinned; add the digest, as in name:v1@sha256:…")
    return finding if needs_digest else finding._replace(severity=findings.WARNING)
