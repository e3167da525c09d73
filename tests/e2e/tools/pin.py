"""Rewrites go.mod and go.sum of the pinned upstreams (run by `pin.sh`, after changing a version)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

from . import upstreams


def replace_lines(upstream: upstreams.Upstream, go_mod: str) -> list[str]:
    """The upstream's own `replace` lines, which Go ignores in a dependency, fit for use outside its tree."""
    lines = []
    for left, right in re.findall(r"^(?:replace)?\s*(\S+) => (.+)$", go_mod, re.MULTILINE):
        if right.startswith("./staging/"):  # Kubernetes v1.x.y publishes its staging modules as v0.x.y
            lines.append(f"{left} => {left} v0.{upstream.version.split('.', 1)[1]}")
        elif not right.startswith("."):  # a local API module: the published one is used instead
            lines.append(f"{left} => {right}")
    return [*lines, *upstream.replace]


def pin(upstream: upstreams.Upstream) -> None:
    print(f"pinning {upstream.directory} at {upstream.version}", flush=True)
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    download = ["go", "mod", "download", "-json", f"{upstream.module}@{upstream.version}"]
    described = json.loads(subprocess.check_output(download, env=environment, cwd="/"))
    with open(described["GoMod"], encoding="utf-8") as file:
        go_mod = file.read()
    language = re.search(r"^go (\S+)", go_mod, re.MULTILINE)
    assert language, f"{upstream.module} states no Go version"
    lines = "".join(f"\t{line}\n" for line in replace_lines(upstream, go_mod))
    shutil.rmtree(upstream.path, ignore_errors=True)
    upstream.path.mkdir()
    header = f"module flux-resourceset.test/e2e/{upstream.directory}\n\ngo {language[1]}\n"
    replaced = f"\nreplace (\n{lines})\n" if lines else ""
    (upstream.path / "go.mod").write_text(header + replaced, encoding="utf-8")
    for command in _commands(upstream):
        subprocess.run(["go", *command], check=True, env=environment, cwd=upstream.path)


def _commands(upstream: upstreams.Upstream) -> list[list[str]]:
    if upstream.packages:
        return [["get", "-tool", *upstream.packages]]
    # `go get` would ask for what the module imports, and of that not everything is published.
    return [["mod", "edit", f"-require={upstream.module}@{upstream.version}"], ["mod", "download", upstream.module]]


def main() -> None:
    wanted = sys.argv[1:] or [upstream.directory for upstream in upstreams.UPSTREAMS]
    for upstream in upstreams.UPSTREAMS:
        if upstream.directory in wanted:
            pin(upstream)


if __name__ == "__main__":
    main()
