"""Writing one document: create, update, delete, edit, and what happens when it is there already or somebody else is faster."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest

from cli.command import PROGRAM, Cli


def revision(api: httpx.Client) -> int:
    newest: int = api.get("/changes?limit=1").json()[0]["revision"]
    return newest


def test_options_come_from_the_schema(cli: Cli) -> None:
    made = cli.ok(
        "rolebinding", "create", "schema-options", "--role", "view",
        "--subject", '{"kind": "Group", "name": "a"}', "--subjects", '{"kind": "User", "name": "b"}',
    ).data  # fmt: skip
    assert [subject["name"] for subject in made["subjects"]] == ["a", "b"]
    made = cli.ok(
        "component", "create", "schema-options", "--component-path=p", "--oci-url", "oci://r/x", "--oci-tag", "v1",
        "--cluster-env-enabled", "--depends-on", "podinfo", "--depends-on", "traefik",
    ).data  # fmt: skip
    assert made["cluster_env_enabled"] is True
    assert made["depends_on"] == ["podinfo", "traefik"]
    changed = cli.ok("component", "update", "schema-options", "--no-cluster-env-enabled", "--clear", "depends-on").data
    assert changed == {**made, "cluster_env_enabled": False, "depends_on": []}
    made = cli.ok(
        "cluster", "create", "schema-options", "--cluster-name", "s", "--cluster-dns", "schema-options.example.com",
        "--environment", "dev", "--node-count", "3", "--namespace", "podinfo", "--label", "zone=a",
        "--platform-component", '{"id": "podinfo", "oci_tag": "x"}', "--patches", '{"podinfo": {"a": 1}}',
    ).data  # fmt: skip
    assert (made["node_count"], made["labels"], made["patches"]) == (3, {"zone": "a"}, {"podinfo": {"a": 1}})
    assert (made["namespaces"], made["platform_components"][0]["oci_tag"]) == ([{"id": "podinfo"}], "x")


def test_a_map_is_merged_by_update_and_a_dash_removes_a_key(cli: Cli) -> None:
    cli.ok("namespace", "create", "merged", "--label", "a=1", "--label", "b=2", "--annotation", "c=x=y z")
    updated = cli.ok("namespace", "update", "merged", "--label", "b-", "--label", "d=", "--allow-prune").data
    assert updated["labels"] == {"a": "1", "d": ""}
    assert updated["annotations"] == {"c": "x=y z"}
    assert updated["allow_prune"] is True


def test_creating_what_exists_with_equal_content_is_no_change(cli: Cli, api: httpx.Client) -> None:
    words = ("namespace", "create", "twice", "--label", "a=b", "--cluster", "demo-cluster-01")
    cli.ok(*words)
    before = revision(api)
    again = cli.ok(*words)
    assert "equal content" in again.err
    assert again.data["labels"] == {"a": "b"}
    assert revision(api) == before
    cli.ok("namespace", "unassign", "twice", "--cluster", "demo-cluster-01")


def test_creating_what_exists_with_other_content_is_refused_unless_an_update_is_meant(cli: Cli, api: httpx.Client) -> None:
    cli.ok("namespace", "create", "differs", "--label", "a=b")
    before = revision(api)
    (line,) = cli.refused(6, "namespace", "create", "differs", "--label", "a=c", "--annotation", "x=y")
    assert line == 'namespaces "differs" exists and differs in /labels/a, /annotations/x; say --update to change it'
    assert revision(api) == before
    assert cli.ok("namespace", "create", "differs", "--label", "a=c", "--update").data["labels"] == {"a": "c"}


def test_a_taken_dns_name_is_a_conflict_that_names_the_owner(cli: Cli) -> None:
    (line,) = cli.refused(
        6, "cluster", "create", "dns-thief", "--cluster-name", "x", "--environment", "dev",
        "--cluster-dns", "demo-cluster-01.k8s.example.com",
    )  # fmt: skip
    assert "demo-cluster-01" in line


def test_a_document_can_come_from_a_file_and_options_win(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "n.yaml"
    file.write_text("kind: namespace\nid: from-file\nlabels: {a: b}\nallow_prune: true\n")
    made = cli.ok("namespace", "create", "from-file", "--from-file", str(file), "--no-allow-prune").data
    assert (made["labels"], made["allow_prune"]) == ({"a": "b"}, False)
    cli.ok("namespace", "update", "from-file", "--from-file", "-", stdin='{"labels": {"a": null, "c": "d"}}')
    assert cli.ok("namespace", "get", "from-file", "-o", "json").data["labels"] == {"c": "d"}
    other = cli.ok("namespace", "create", "from-file-other", "--from-file", str(file))
    assert other.data["id"] == "from-file-other"
    assert f'note: the id in {file} is "from-file"; from-file-other, as in the command, counts' in other.err
    assert "/kind" in cli.refused(3, "rolebinding", "create", "from-file", "--from-file", str(file))[0]


def test_deleting_needs_a_yes_and_refuses_what_is_used(cli: Cli, api: httpx.Client) -> None:
    cli.ok("namespace", "create", "to-delete", "--cluster", "demo-cluster-01")
    assert "--yes" in cli.refused(2, "namespace", "delete", "to-delete")[0]
    assert "demo-cluster-01" in cli.refused(6, "namespace", "delete", "to-delete", "--yes")[0]
    cli.ok("namespace", "unassign", "to-delete", "--cluster", "demo-cluster-01")
    rehearsed = cli.ok("namespace", "delete", "to-delete", "--dry-run").data["results"]
    assert [(item["id"], item["change"]) for item in rehearsed] == [("to-delete", "delete")]
    assert api.get("/namespaces/to-delete").status_code == 200
    assert cli.ok("namespace", "delete", "to-delete", "-y").data["id"] == "to-delete"
    assert cli.refused(4, "namespace", "delete", "to-delete", "-y") == ['namespaces "to-delete" not found']


def test_a_definition_in_use_can_be_deleted_by_force(cli: Cli, api: httpx.Client) -> None:
    cli.ok("namespace", "create", "forced", "--cluster", "demo-cluster-01")
    cli.ok("namespace", "delete", "forced", "--force", "--yes")
    assert api.get("/namespaces/forced").status_code == 404
    cli.ok("namespace", "unassign", "forced", "--cluster", "demo-cluster-01")


def test_decommissioning_empties_what_flux_gets(cli: Cli) -> None:
    dns = "leaving.example.com"
    cli.ok(
        "cluster",
        "create",
        "leaving",
        "--cluster-name",
        "l",
        "--cluster-dns",
        dns,
        "--environment",
        "dev",
        "--namespace",
        "podinfo",
    )
    assert cli.refused(2, "cluster", "decommission", "leaving")
    cli.ok("cluster", "decommission", "leaving", "--yes")
    assert cli.ok("inputs", dns, "namespaces").out == '{"inputs":[]}'
    assert cli.refused(4, "inputs", "never.example.com", "namespaces")


@pytest.mark.long
def test_what_a_write_did_is_told_in_every_format(cli: Cli, tmp_path: Path) -> None:
    opened = cli.but(EDITOR=editor(tmp_path, "sed -i s/first/second/ $1"))
    for form in ("json", "yaml", "name", "table"):
        id = f"told-{form}"
        for program, verb, *options in (
            (cli, "create", "--label", "a=first"), (cli, "update", "--label", "b=b"), (opened, "edit"),
            (cli, "assign", "--cluster", "demo-cluster-01"), (cli, "unassign", "--cluster", "demo-cluster-01"),
            (cli, "delete", "--yes"),
        ):  # fmt: skip
            assert "(revision " in program.ok("namespace", verb, id, *options, "-o", form).err, verb


def test_warnings_of_the_server_are_passed_on(cli: Cli, tmp_path: Path) -> None:
    words = ("component", "create", "doubtful", "--component-path", "x", "--oci-url", "oci://r/x", "--oci-tag", "6.x")
    for more in (["--dry-run"], []):
        warned = [line for line in cli.ok(*words, *more).err.splitlines() if line.startswith("warning: ")]
        assert len(warned) == 1
        assert "leaves Helm a choice" in warned[0]
    assert "warning: " not in cli.ok(*words).err  # it is there already, and was told
    edited = cli.but(EDITOR=editor(tmp_path, "sed -i s/6.x/7.x/ $1")).ok("component", "edit", "doubtful")
    assert "leaves Helm a choice" in edited.err


# Edit


def editor(tmp_path: Path, body: str) -> str:
    """An editor that changes the file at once, by a shell script with the file as $1."""
    script = tmp_path / "editor.sh"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return str(script)


def test_an_edit_is_stored(cli: Cli, tmp_path: Path) -> None:
    cli.ok("namespace", "create", "edited", "--label", "a=old")
    changed = cli.but(EDITOR=editor(tmp_path, "sed -i s/old/new/ $1")).ok("namespace", "edit", "edited")
    assert changed.data["labels"] == {"a": "new"}
    unchanged = cli.but(EDITOR="true").ok("namespace", "edit", "edited")
    assert "not changed" in unchanged.err


def test_an_edit_holds_together_with_what_others_change_elsewhere(cli: Cli, server: object, tmp_path: Path) -> None:
    cli.ok("namespace", "create", "edited-together", "--label", "a=old")
    other = "flux-resourceset-cli namespace update edited-together --annotation by=other >/dev/null 2>&1"
    path = f"{Path(PROGRAM[0]).parent}:{cli.environment['PATH']}"
    both = cli.but(EDITOR=editor(tmp_path, f"sed -i s/old/new/ $1\n{other}"), PATH=path)
    changed = both.ok("namespace", "edit", "edited-together")
    assert changed.data["labels"] == {"a": "new"}
    assert changed.data["annotations"] == {"by": "other"}


def test_an_edit_of_the_same_field_is_a_conflict_and_is_kept(cli: Cli, tmp_path: Path) -> None:
    cli.ok("namespace", "create", "edited-apart", "--label", "a=old")
    other = "flux-resourceset-cli namespace update edited-apart --label a=theirs >/dev/null 2>&1"
    path = f"{Path(PROGRAM[0]).parent}:{cli.environment['PATH']}"
    both = cli.but(EDITOR=editor(tmp_path, f"sed -i s/old/mine/ $1\n{other}"), PATH=path, TMPDIR=str(tmp_path))
    conflict, kept = both.refused(6, "namespace", "edit", "edited-apart")
    assert "/labels/a" in conflict
    file = next(Path(tmp_path).glob("namespace-edited-apart-*.yaml"))
    assert str(file) in kept
    assert f"diff -f {file}" in kept  # to apply it would undo what the other did
    assert "apply" not in kept
    assert "mine" in file.read_text()
    assert cli.ok("namespace", "get", "edited-apart", "-o", "json").data["labels"] == {"a": "theirs"}


def test_an_edit_that_is_refused_is_kept(cli: Cli, tmp_path: Path) -> None:
    cli.ok("namespace", "create", "edited-wrong", "--label", "a=old")
    wrong = cli.but(EDITOR=editor(tmp_path, "sed -i 's/old/not a value/' $1"), TMPDIR=str(tmp_path))
    lines = wrong.refused(3, "namespace", "edit", "edited-wrong")
    assert lines[0].startswith('namespaces "edited-wrong": /labels/a ')
    broken = cli.but(EDITOR=editor(tmp_path, "echo '{' > $1"), TMPDIR=str(tmp_path))
    assert broken.refused(2, "namespace", "edit", "edited-wrong")
    assert len(list(tmp_path.glob("namespace-edited-wrong-*.yaml"))) == 2
    assert cli.but(EDITOR="/no/such/editor", TMPDIR=str(tmp_path)).refused(2, "namespace", "edit", "edited-wrong")


def test_an_edit_that_is_refused_opens_again_with_the_errors_on_top(cli: Cli, tmp_path: Path) -> None:
    cli.ok("namespace", "create", "edited-again", "--label", "a=old")
    seen = tmp_path / "seen"
    twice = editor(
        tmp_path, f"if grep -q '# error: ' $1; then cp $1 {seen}; sed -i 's/: .*not a value/: mended/' $1; "
        "else sed -i 's/old/not a value/' $1; fi",
    )  # fmt: skip
    opened = cli.but(EDITOR=twice, TMPDIR=str(tmp_path))
    done = opened.ok("namespace", "edit", "edited-again")
    assert done.data["labels"] == {"a": "mended"}
    first, second, *_ = seen.read_text().splitlines()
    assert first.startswith("# A namespace with its labels")
    assert second.startswith('# error: namespaces "edited-again": /labels/a ')
    assert not list(tmp_path.glob("namespace-edited-again-*.yaml"))


def test_an_edit_that_is_saved_unchanged_after_an_error_gives_up(cli: Cli, tmp_path: Path) -> None:
    cli.ok("namespace", "create", "edited-once", "--label", "a=old")
    count = tmp_path / "count"
    script = editor(tmp_path, f"echo x >> {count}\nsed -i 's/id: edited-once/id: other/' $1")
    lines = cli.but(EDITOR=script, TMPDIR=str(tmp_path)).refused(3, "namespace", "edit", "edited-once")
    (file,) = tmp_path.glob("namespace-edited-once-*.yaml")
    assert "/id must stay edited-once" in lines[0]
    assert str(file) in lines[-1]
    assert "# error: " in file.read_text()
    assert count.read_text() == "x\nx\n"
    count.unlink()
    endless = editor(tmp_path, f"echo x >> {count}\necho '- x' >> $1")
    assert cli.but(EDITOR=endless, TMPDIR=str(tmp_path)).refused(2, "namespace", "edit", "edited-once")
    assert len(count.read_text().split()) == 10
    back = editor(tmp_path, "if grep -q '# error: ' $1; then sed -i 's/bad value/old/' $1; else sed -i 's/old/bad value/' $1; fi")
    assert "not changed" in cli.but(EDITOR=back, TMPDIR=str(tmp_path)).ok("namespace", "edit", "edited-once").err


def test_without_an_editor_and_a_terminal_nothing_is_opened(cli: Cli, tmp_path: Path) -> None:
    for program in (cli, cli.but(EDITOR=""), cli.but(EDITOR=" ", VISUAL="")):
        assert program.refused(2, "namespace", "edit", "podinfo")[0].startswith("EDITOR is not set")
    assert "not changed" in cli.but(VISUAL="true").ok("namespace", "edit", "podinfo").err


# Together


def test_writers_at_the_same_time_lose_nothing(cli: Cli, api: httpx.Client) -> None:
    body = {"id": "busy", "cluster_name": "b", "cluster_dns": "busy.example.com", "environment": "dev"}
    assert api.post("/clusters", json={**body, "platform_components": [{"id": "podinfo"}]}).status_code == 201
    commands: list[tuple[str, ...]] = [
        ("component", "patch", "podinfo", "--cluster", "busy", "--set", f"key{n}=v") for n in range(4)
    ]
    commands += [("namespace", "create", f"busy-{n}", "--cluster", "busy") for n in range(2)]
    threads = [threading.Thread(target=cli.ok, args=words) for words in commands]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cluster = api.get("/clusters/busy").json()
    assert sorted(cluster["patches"]["podinfo"]) == ["key0", "key1", "key2", "key3"]
    assert sorted(ref["id"] for ref in cluster["namespaces"]) == ["busy-0", "busy-1"]


@pytest.mark.parametrize(
    "words", [("update", "podinfo"), ("update", "podinfo", "--clear", "nothing"), ("create", "x", "--label", "a")]
)
def test_a_command_that_says_nothing_useful_is_a_usage_error(cli: Cli, words: tuple[str, ...]) -> None:
    assert cli.refused(2, "namespace", *words)


def test_clearing_references_says_so_to_the_server_and_a_null_from_a_file_is_refused(cli: Cli, api: httpx.Client) -> None:
    body = {"id": "cleared", "cluster_name": "cleared", "cluster_dns": "cleared.example.com", "environment": "dev"}
    api.post("/clusters", json={**body, "namespaces": [{"id": "podinfo"}]})
    (line,) = cli.refused(3, "cluster", "update", "cleared", "--from-file", "-", stdin="namespaces:\n")
    assert line == 'clusters "cleared": /namespaces must not be null; send [] to empty it'
    assert cli.refused(3, "cluster", "update", "cleared", "--clear", "patches")
    assert cli.ok("cluster", "update", "cleared", "--clear", "namespaces").data["namespaces"] == []


def test_an_editor_that_fails_stores_nothing(cli: Cli, api: httpx.Client, tmp_path: Path) -> None:
    before = revision(api)
    first, kept = cli.but(EDITOR="false", TMPDIR=str(tmp_path)).refused(2, "namespace", "edit", "podinfo")
    assert first == "the editor 'false' ended with 1, so nothing was stored"
    assert kept.startswith(f"what you wrote is kept in {tmp_path}")
    assert revision(api) == before
