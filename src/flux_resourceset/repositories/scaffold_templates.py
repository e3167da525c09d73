"""The files that repositories are scaffolded from, as the package carries them.

Flux has `${tenant}`, Flux Operator `<< >>` and GitHub `${{ }}`, and all of these stay as they are. What is put in here stands as
`@NAME@`, and as `@NAME:text@` where it is a scalar of YAML, in quotes if it needs them.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources.abc import Traversable

from flux_resourceset.repositories import yaml_scalars

_PLACE = re.compile(r"@([A-Z]+)(:text)?@")
_HIDDEN = "dot-"  # .github or .gitignore would have a meaning where these files are kept


def filled(folders: Sequence[str], values: Mapping[str, str]) -> dict[str, str]:
    """The texts below some folders by path, with values in their places; a value that is missing is a KeyError."""

    def value(place: re.Match[str]) -> str:
        text = values[place[1]]
        return yaml_scalars.written(text) if place[2] else text

    texts = {path: text for folder in folders for path, text in _texts(folder).items()}
    return {path: _PLACE.sub(value, text) for path, text in sorted(texts.items())}


@functools.cache
def _texts(folder: str) -> Mapping[str, str]:
    return dict(_found(importlib.resources.files(__package__).joinpath("templates", folder), ""))


def _found(folder: Traversable, above: str) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        name = "." + entry.name.removeprefix(_HIDDEN) if entry.name.startswith(_HIDDEN) else entry.name
        if entry.is_dir():
            yield from _found(entry, f"{above}{name}/")
        else:
            yield above + name, entry.read_text(encoding="utf-8")
