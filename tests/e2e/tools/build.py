"""Builds the pinned Kubernetes and Flux binaries into a cache outside the repository (run by `build.sh`)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from . import upstreams

PARALLEL = "2"  # compilers at once: more than that needs over 4 GB of memory for kube-apiserver
FLAGS = ("-p", PARALLEL, "-trimpath", "-buildvcs=false")


def home(environment: Mapping[str, str]) -> Path:
    """Where binaries and custom resource definitions are kept between runs."""
    cache = environment.get("XDG_CACHE_HOME") or os.path.join(environment["HOME"], ".cache")
    return Path(environment.get("E2E_HOME") or os.path.join(cache, "flux-resourceset-e2e"))


def key(binary: upstreams.Binary) -> str:
    """Changes with whatever would make another binary."""
    digest = hashlib.sha256(repr((binary, FLAGS)).encode())
    for name in ("go.mod", "go.sum"):
        digest.update((upstreams.TOOLS / binary.directory / name).read_bytes())
    return digest.hexdigest()


def go(*arguments: str, cwd: Path) -> str:
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0"}
    command = ["nice", "-n", "15", "go", *arguments]
    return subprocess.check_output(command, cwd=cwd, env=environment, text=True)


def module_source(directory: Path, module: str) -> Path:
    """The module's files as the Go module cache holds them."""
    version = go("list", "-m", "-f", "{{.Version}}", module, cwd=directory).strip()
    return Path(json.loads(go("mod", "download", "-json", f"{module}@{version}", cwd=directory))["Dir"])


def with_placeholder(binary: upstreams.Binary, module: str, scratch: Path) -> list[str]:
    """Flags that build from a copy of the module, with the embedded file that upstream only generates."""
    assert binary.placeholder
    directory = upstreams.TOOLS / binary.directory
    copy = scratch / "source"
    # Contents only: the module cache is read-only, and the copy must be writable.
    shutil.copytree(module_source(directory, module), copy, copy_function=shutil.copyfile)
    for folder in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    placeholder = copy / binary.placeholder
    placeholder.parent.mkdir(parents=True, exist_ok=True)
    placeholder.write_text("placeholder", encoding="utf-8")
    shutil.copyfile(directory / "go.mod", scratch / "build.mod")
    shutil.copyfile(directory / "go.sum", scratch / "build.sum")
    go("mod", "edit", "-replace", f"{module}={copy}", str(scratch / "build.mod"), cwd=directory)
    return [f"-modfile={scratch / 'build.mod'}"]


def build(binary: upstreams.Binary, target: Path) -> None:
    upstream = next(each for each in upstreams.UPSTREAMS if each.directory == binary.directory)
    with tempfile.TemporaryDirectory(prefix="e2e-build-") as scratch:
        flags = [*FLAGS, f"-ldflags={binary.ldflags}"]
        if binary.placeholder:
            flags += with_placeholder(binary, upstream.module, Path(scratch))
        # Beside the target and then renamed: whoever looks meanwhile sees the old binary or the new one.
        unfinished = target.with_suffix(".unfinished")
        go("build", *flags, "-o", str(unfinished), binary.package, cwd=upstream.path)
        unfinished.replace(target)


def is_built(binary: upstreams.Binary, cache: Path) -> bool:
    target, built = _places(binary, cache)
    return target.exists() and built.exists() and built.read_text(encoding="utf-8") == key(binary)


def missing(cache: Path) -> list[str]:
    """The names of the binaries that have to be built before the suite can run."""
    return [binary.name for binary in upstreams.BINARIES if not is_built(binary, cache)]


def _places(binary: upstreams.Binary, cache: Path) -> tuple[Path, Path]:
    return cache / "bin" / binary.name, cache / "bin" / f".{binary.name}.key"


def build_missing(binaries: list[upstreams.Binary], cache: Path) -> None:
    (cache / "bin").mkdir(parents=True, exist_ok=True)
    for number, binary in enumerate(binaries, start=1):
        target, built = _places(binary, cache)
        said = f"[{number}/{len(binaries)}] {binary.name}"
        if is_built(binary, cache):
            print(f"{said}: already built", flush=True)
            continue
        print(f"{said}: building ...", flush=True)
        started = time.monotonic()
        build(binary, target)
        built.write_text(key(binary), encoding="utf-8")
        print(f"{said}: built in {time.monotonic() - started:.0f} s", flush=True)


def copy_definitions(cache: Path) -> None:
    """The custom resource definitions of the pinned versions, so that the suite itself needs no Go."""
    for upstream in upstreams.UPSTREAMS:
        if upstream.crds:
            target = cache / "crds" / upstream.directory
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            source = module_source(upstream.path, upstream.module) / upstream.crds
            for file in source.glob(upstream.definitions):
                shutil.copyfile(file, target / file.name)


def main() -> int:
    cache = home(os.environ)
    unknown = set(sys.argv[1:]) - {binary.name for binary in upstreams.BINARIES}
    if unknown:
        print(f"e2e tools: no such tool: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    if shutil.which("go") is None:
        print(
            "e2e tools: `go` is not on the PATH; the end-to-end suite needs Go 1.26",
            file=sys.stderr,
        )
        return 1
    wanted = [each for each in upstreams.BINARIES if not sys.argv[1:] or each.name in sys.argv[1:]]
    print(
        f"e2e tools: {cache / 'bin'} (up to 25 minutes from nothing, then seconds)",
        flush=True,
    )
    try:
        build_missing(wanted, cache)
        copy_definitions(cache)
    except subprocess.CalledProcessError as failure:
        print(f"e2e tools: failed: {' '.join(failure.cmd)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
