"""Documents as YAML, so that what is printed can be applied again."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any

from flux_resourceset.cli.output.terminal_text import escaped, steering


@functools.cache
def _dumper() -> Any:
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # one of two classes, both fit
        def ignore_aliases(self, data: Any) -> bool:
            return True  # a document never says "the same as above"

    def represent_text(dumper: Any, text: str) -> Any:
        # what steers a terminal is escaped, which only double quotes can do
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if steering().search(text) else None)

    Dumper.add_representer(str, represent_text)
    # YAML 1.2 reads these as numbers, so they are put in quotes for other readers
    number = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+$|0o[0-7]+$")
    Dumper.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+0123456789"))
    return Dumper


def dumped(values: Iterable[Any]) -> str:
    import yaml

    documents = list(values)
    text: str = yaml.dump_all(
        documents,
        Dumper=_dumper(),
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        explicit_start=len(documents) > 1,
        width=10_000,
    )
    return escaped(text)
