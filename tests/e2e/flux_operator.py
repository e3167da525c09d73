"""The flux-operator CLI: what a ResourceSet becomes, without a cluster."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from flux_resourceset.render import dialect

from .tools import build

Object = dict[str, Any]


class Loader(yaml.SafeLoader):
    """Only what JSON knows is more than text: Go quotes texts that look like it, and leaves `<<`, `=` and dates bare."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # PyYAML's own name and form


for _tag, _pattern, _first in (
    ("null", r"null|~|", ["n", "~", ""]),
    ("bool", r"true|false", ["t", "f"]),
    ("int", r"-?[0-9]{1,20}", list("-0123456789")),  # what has more digits is text to Go, and bare
):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), _first)


def binary(name: str) -> Path:
    """One of the built tools."""
    return build.home(os.environ) / "bin" / name


def rendered(directory: Path, template: str, inputs: list[Object]) -> list[Object]:
    """The objects of the text of a ResourceSet and these inputs."""
    (directory / "template.yaml").write_text(template, encoding="utf-8")
    (directory / "inputs.json").write_text(dialect.json_text(inputs), encoding="utf-8")
    files = ("-f", str(directory / "template.yaml"), "--inputs-from", str(directory / "inputs.json"))
    command = [str(binary("flux-operator-cli")), "build", "rset", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if "no objects were generated" in done.stderr:
        return []
    assert done.returncode == 0, done.stderr
    return [found for found in yaml.load_all(done.stdout, Loader) if found]  # a SafeLoader
