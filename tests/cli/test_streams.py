"""Streams that are closed, full or gone: told by the exit code, never by a traceback."""

from __future__ import annotations

import pytest

from cli.command import Cli, Done

pytestmark = pytest.mark.long


def quiet(done: Done) -> Done:
    """Nothing of Python's own on stderr."""
    for word in ("Traceback", "Exception ignored", "a defect"):
        assert word not in done.err, done
    return done


@pytest.mark.parametrize("words", ["--help", "version", "cluster list", "cluster list -o yaml", "export"])
def test_a_closed_stdout_or_stderr_is_as_good_as_one_that_nobody_reads(cli: Cli, words: str) -> None:
    assert quiet(cli.shell(f"flux-resourceset-cli {words} >&-")).code == 0
    done = cli.shell(f"flux-resourceset-cli {words} 2>&-")
    assert done.code == 0
    assert done.out == cli.shell(f"flux-resourceset-cli {words}").out
    assert cli.shell(f"flux-resourceset-cli {words} <&- >&- 2>&-").code == 0


@pytest.mark.parametrize(
    "words",
    [
        "namespace delete traefik",
        "apply -f -",
        "import - --yes",
        "namespace create x --from-file -",
        "config set-context a --url http://x --token -",
        "render --inputs - --view namespaces",
    ],
)
def test_a_closed_stdin_is_an_empty_one(cli: Cli, words: str) -> None:
    done = quiet(cli.shell(f"flux-resourceset-cli {words} <&-"))
    assert done.code == 2, done
    assert len(done.lines) == 1


def test_a_full_disk_under_a_stream_is_told_once(cli: Cli) -> None:
    full = quiet(cli.shell("flux-resourceset-cli cluster list > /dev/full"))
    assert (full.code, len(full.err.splitlines())) == (5, 1)
    assert full.lines == ["No space left on device"]
    assert cli.shell("flux-resourceset-cli diff -f - > /dev/full < /dev/null").code == 2
    assert cli.shell("flux-resourceset-cli cluster get nowhere 2> /dev/full").code == 4
    assert cli.shell("flux-resourceset-cli namespace create untold 2> /dev/full").code == 0
