"""Every example of the documentation does what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

import live
from docs import console

pytestmark = pytest.mark.long

PAGES = [
    path
    for path in (live.ROOT / "README.md", *sorted((live.ROOT / "docs").glob("*.md")))
    if console.steps(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_examples_of_a_page_come_out_as_shown(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    with console.session(tmp_path, text) as session:
        for step in console.steps(text):
            found = console.difference(step.expected, session.run(step.command))
            assert found is None, f"{page.name}:{step.line}: {step.command}\n{found}"


def test_pages_that_promise_examples_have_them() -> None:
    promised = "api bootstrap configuration demo extending install merge patching phone-home providers templates versioning"
    promised += " everyday-story apply-and-git everyday-questions scaling-out two-repositories"
    promised += " plan-and-apply guards-and-freezes looking-back going-back where-values-come-from wrong-deletion moving-in"
    assert {"README.md", *(f"{name}.md" for name in promised.split())} <= {path.name for path in PAGES}


def test_a_refusal_is_shown_by_those_who_expect_one_and_settings_hold(tmp_path: Path) -> None:
    page = "```sh file=server.env\n# of the server\nPROTECTED_ENVIRONMENTS=dev\n```\n"
    removal = "flux-resourceset-cli component unassign podinfo --cluster demo-cluster-01"
    with console.session(tmp_path, page) as session:
        refused = session.run(removal + console.REFUSED)
        assert refused.endswith("--confirm-removals 1\nexit 6\n")
        with pytest.raises(AssertionError, match="exit 6"):
            session.run(removal)
        with pytest.raises(AssertionError, match="exit 0"):
            session.run(f"{removal} --confirm-removals 1{console.REFUSED}")


def test_a_page_on_a_terminal_shows_what_people_see(tmp_path: Path) -> None:
    with console.session(tmp_path, "<!-- terminal: 60 columns -->\n") as session:
        rows = session.run("flux-resourceset-cli cluster list").splitlines()
        assert {len(row.rstrip()) for row in rows} & set(range(40, 61))
        assert max(map(len, rows)) <= 60
        updated = session.run("flux-resourceset-cli component update podinfo --oci-tag 9.9.9").splitlines()
        assert updated == ["platform_components/podinfo updated", "1 updated (revision 2)"]
        with pytest.raises(AssertionError, match="not make"):
            session.run("make all")


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ('{"a": 1}', '{"a": 2}'),
        ('{"a": 1}', '{"a": 1, "b": 2}'),
        ('{"a": …, "b": 1}', '{"b": 1}'),
        ('{"a": 1, …}', '{"b": 1}'),
        ("[1]", "[1, 2]"),
        ("[1, 2, …]", "[1]"),
        ('{"a": [{"b": "x … y"}]}', '{"a": [{"b": "x z y"}]}'),
        ("HTTP/1.1 200 OK", "HTTP/1.1 404 Not Found\n\n{}"),
        ("HTTP/1.1 200 OK\nETag: …", "HTTP/1.1 200 OK\n\n{}"),
        ('HTTP/1.1 200 OK\n\n{"a": 1}', "HTTP/1.1 200 OK\nx: y\n\n{}"),
        ("revision 1", "revision 2"),
        ("kind: A\nname: b", "name: b\nkind: A"),
    ],
)
def test_an_output_that_is_not_as_shown_is_noticed(expected: str, actual: str) -> None:
    assert console.difference(expected, actual) is not None


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ('{"b": …, "a": 1}', '{"a": 1, "b": {"c": []}}'),
        ('{"a": [1, …], …}', '{"a": [1, 2], "b": 2}'),
        ("HTTP/1.1 200 OK\nETag: …", 'HTTP/1.1 200 OK\netag: "1"\ndate: x\n\n{}'),
        ("revision …", "first\nrevision 2\nlast"),
        ("HTTP/1.1 200 OK\nB: 2\nA: 1", "HTTP/1.1 200 OK\na: 1\nb: 2\n\n{}"),
        ("kind: A\n…\nname: b", "kind: A\nmetadata:\nname: b"),
        ("", "anything"),
    ],
)
def test_what_a_page_leaves_open_may_be_anything(expected: str, actual: str) -> None:
    assert console.difference(expected, actual) is None
