"""What is known of a whole fleet while its clusters and tenants are looked at in turn, and how their files are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flux_resourceset.repositories import trees
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.lint import places, reports, secret_sources, secret_values, tenant_inputs
from flux_resourceset.repositories.lint.reports import Report
from flux_resourceset.repositories.manifests import Manifest
from flux_resourceset.repositories.policy import Policy
from flux_resourceset.repositories.trees import Sort


class Scene(NamedTuple):
    tree: trees.Tree
    policy: Policy
    known: tenant_inputs.Known
    fields: tenant_inputs.Fields
    vaults: secret_sources.Owners
    clusters: dict[str, str]  # those that were looked at, with their environments

    def read(self, path: str) -> tuple[Report, list[Manifest] | None]:
        """A file of manifests, and what is wrong with it whatever it is for; None where it cannot be read."""
        report = Report(path)
        body = reports.body(self.tree, path, report)
        if body is None:
            return report, None
        report.found += secret_values.of_bytes(path, body)
        documents = report.documents(body)
        report.found += secret_values.of_documents(path, body, documents or ())
        return report, documents

    def judged(self, placed: Iterator[places.Placed], read: Sequence[str] = ()) -> Iterator[Finding]:
        """What is wrong with the places of things, and the secrets in files that are read nowhere else."""
        for entry, wrong in placed:
            if wrong is not None:
                yield wrong
            if entry.sort is Sort.FILE and (wrong is not None or entry.path.rpartition("/")[2] not in read):
                yield from self._secrets(entry.path)

    def _secrets(self, path: str) -> Iterator[Finding]:
        try:
            body = trees.checked(self.tree, path)
        except trees.TooLarge:
            return  # no cluster gets it
        yield from secret_values.of_bytes(path, body or b"")
