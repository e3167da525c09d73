"""Installs a wheel as people do, light and with the server, and uses both: `wheel.py WHEEL DIRECTORY`.

What is missing in a wheel, or in what it asks for, shows here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import live
from flux_resourceset import __main__ as program

QUOTAS = live.ROOT / "examples" / "kinds" / "resource_quotas"

# Every module of the command line, on a system that has no fcntl (the standard library tries it, and does without).
IMPORTS = """
import importlib, pkgutil, sys
sys.modules["fcntl"] = None
for name in ("flux_resourceset.cli", "flux_resourceset.client", "flux_resourceset.render", "flux_resourceset.repositories"):
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(*sorted(name for name in sys.modules if "." not in name))
"""


def installed(wheel: str, directory: Path) -> Path:
    """The programs of a virtual environment with nothing but this in it."""
    venv.create(directory, with_pip=True)
    bin = directory / "bin"
    subprocess.run([bin / "pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True)
    return bin


def output(*command: str | Path, env: dict[str, str]) -> str:
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return done.stdout


def check_light(bin: Path, directory: Path) -> None:
    """The command line alone, without a server anywhere."""
    env = {"HOME": str(directory), "PATH": os.environ["PATH"]}
    cli = bin / "flux-resourceset-cli"
    assert "bootstrap" in output(cli, "--help", env=env)
    assert output(cli, "version", env=env)
    assert "complete" in output(cli, "completion", "bash", env=env)
    assert "cluster_dns" in output(cli, "explain", "cluster", env=env)
    template, inputs = f"{QUOTAS}.resourceset.yaml", f"{QUOTAS}.inputs.json"
    assert "kind: ResourceQuota" in output(cli, "render", "--engine", "builtin", "--inputs", inputs, "-f", template, env=env)
    imported = set(output(bin / "python", "-c", IMPORTS, env=env).split())
    assert "yaml" in imported
    assert not imported & {*program.EXTRA, "jsonschema_rs"}  # which only commands load that hold something against a schema
    assert "acme-fleet-config/fleet.yaml" in output(cli, "fleet", "init", str(directory), env=env)
    assert output(cli, "fleet", "lint", "--strict", "--repo", str(directory / "acme-fleet-config"), env=env) == "[]\n"
    refused = subprocess.run([bin / "flux-resourceset"], env=env, capture_output=True, text=True, timeout=60)
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1), refused
    assert "pip install 'flux-resourceset[server]'" in refused.stderr
    for line in output(bin / "pip", "freeze", env=env).splitlines():
        assert (
            line.lower()
            .replace("_", "-")
            .startswith(("click==", "pyyaml==", "text-unidecode==", "jsonschema-rs==", "flux-resourceset @"))
        ), f"{line} is not light"


def check_server(bin: Path, directory: Path) -> None:
    environment = live.environment(directory, SEED_FILE=str(live.ROOT / "data" / "seed.json"))
    server = live.Server(directory, environment, program=(str(bin / "flux-resourceset"),))
    try:
        server.wait("/ready")
        env = {"FLUX_API_URL": server.url, "FLUX_API_TOKEN": live.READ, "HOME": str(directory), "PATH": os.environ["PATH"]}
        for command in (["cluster", "list"], ["bootstrap", "demo-cluster-01", "--api-url", server.url, "--existing-secret", "x"]):
            assert "demo-cluster-01" in output(bin / "flux-resourceset-cli", *command, env=env)
    finally:
        server.stop()


def main(wheel: Path, directory: Path) -> None:
    check_light(installed(str(wheel), directory / "light"), directory)
    check_server(installed(f"{wheel}[server]", directory / "server"), directory)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
