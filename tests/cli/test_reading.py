"""Reading: lists, documents, formats, the change log, overrides, explanations."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from pathlib import Path

import httpx
import pytest
import yaml

import live
from cli.command import Cli
from flux_resourceset import __version__


@pytest.mark.parametrize(
    ("group", "collection"),
    [("cluster", "clusters"), ("component", "platform_components"), ("namespace", "namespaces"), ("rolebinding", "rolebindings")],
)
def test_list_and_get_print_what_the_api_answers(cli: Cli, api: httpx.Client, group: str, collection: str) -> None:
    listed = cli.ok(group, "list", "-o", "json").data
    assert {item["id"] for item in listed} >= {item["id"] for item in api.get(f"/{collection}?limit=2").json()}
    id = listed[0]["id"]
    assert cli.ok(group, "get", id, "-o", "json").data == api.get(f"/{collection}/{id}").json()


def test_filters_and_limits_narrow_a_list(cli: Cli, api: httpx.Client) -> None:
    for name in ("reading-a", "reading-b"):
        body = {"id": name, "cluster_name": name, "cluster_dns": f"{name}.example.com", "environment": "uat"}
        api.post("/clusters", json={**body, "labels": {"reading": name[-1]}})
    assert [c["id"] for c in cli.ok("cluster", "list", "-l", "reading in (a,b)", "-o", "json").data] == ["reading-a", "reading-b"]
    assert [c["id"] for c in cli.ok("cluster", "list", "-lreading=b", "--environment", "uat", "-o", "json").data] == ["reading-b"]
    limited = cli.ok("cluster", "list", "-l", "reading", "--limit=1", "--offset", "1", "-o", "json")
    assert [c["id"] for c in limited.data] == ["reading-b"]
    assert "1 of 2" in limited.err
    assert cli.refused(3, "cluster", "list", "-l", "a==b==c")
    assert cli.refused(3, "cluster", "list", "--environment", "nowhere") == ["/environment must be one of dev, qa, uat, prod"]


def test_yaml_carries_the_kind_and_name_prints_kind_and_id(cli: Cli, api: httpx.Client) -> None:
    document = yaml.safe_load(cli.ok("namespace", "get", "podinfo", "-o", "yaml").out)
    assert document == {"kind": "namespaces", **api.get("/namespaces/podinfo").json()}
    stream = list(yaml.safe_load_all(cli.ok("rolebinding", "list", "-o", "yaml").out))
    assert {item["kind"] for item in stream} == {"rolebindings"}
    assert cli.ok("rolebinding", "get", "dev-readers", "--output=name").out == "rolebindings/dev-readers\n"


def test_wide_shows_more_than_table(cli: Cli) -> None:
    table, wide = (cli.ok("component", "get", "podinfo", "-o", form).out for form in ("table", "wide"))
    assert table.splitlines()[0].split("   ")[0] == "ID"
    assert "DEPENDS ON" in wide
    assert "DEPENDS ON" not in table


def test_global_options_work_before_between_and_after_the_words_of_a_command(cli: Cli) -> None:
    wanted = cli.ok("cluster", "get", "demo-cluster-01", "-o", "name").out
    assert cli.ok("-o", "name", "cluster", "get", "demo-cluster-01").out == wanted
    assert cli.ok("cluster", "-o", "name", "get", "demo-cluster-01").out == wanted
    assert cli.ok("--output=name", "cluster", "get", "--timeout", "5", "demo-cluster-01").out == wanted
    assert cli.ok("-o=name", "cluster", "get", "--", "demo-cluster-01").out == wanted
    assert cli.ok("-o", "name", "--", "cluster", "get", "demo-cluster-01").out == wanted


def test_options_of_a_command_may_stand_between_its_words(cli: Cli) -> None:
    wanted = cli.ok("cluster", "list", "--limit", "1", "-o", "name").out
    assert cli.ok("cluster", "--limit", "1", "list", "-o", "name").out == wanted
    assert cli.ok("-o", "name", "cluster", "--limit=1", "list").out == wanted
    assert cli.refused(2, "cluster", "--limit", "1", "list", "--limit", "2") == ["--limit is given twice"]
    assert cli.refused(2, "-o", "json", "cluster", "list", "-o", "yaml") == ["-o is given twice"]
    assert cli.refused(2, "cluster", "--limt", "1", "list")[0].startswith("unknown option --limt (did you mean --limit?)")


def test_help_comes_whatever_else_is_wrong_with_a_command(cli: Cli) -> None:
    wanted = cli.ok("cluster", "get", "--help").out
    assert "Usage: flux-resourceset-cli cluster get <id>" in wanted
    for words in ("help cluster get", "--help cluster get", "cluster -h get a b", "cluster get --limt 3 --help"):
        assert cli.ok(*words.split()).out == wanted
    assert "Usage: flux-resourceset-cli cluster <command>" in cli.ok("help", "cluster").out


def test_the_change_log_is_newest_first_and_can_be_filtered(cli: Cli) -> None:
    cli.ok("namespace", "create", "logged", "--reason", "to be found: ü")
    cli.ok("namespace", "update", "logged", "--label", "a=b")
    found = cli.ok("changes", "--kind", "namespace", "--id", "logged", "-o", "json").data
    assert [entry["changes"][0]["operation"] for entry in found] == ["update", "create"]
    assert found[1]["reason"] == "to be found: ü"
    moment = found[0]["time"]
    assert (
        cli.ok("changes", "--since", moment, "--id", "logged", "--actor", "write", "--limit", "1", "-o", "json").data == found[:1]
    )
    assert cli.ok("changes", "--until", found[1]["time"], "--id", "logged", "-o", "json").data == found[1:]
    assert cli.ok("changes", "--id", "logged", "-o", "name").out.split() == [str(entry["revision"]) for entry in found]
    assert "update namespaces/logged" in cli.ok("changes", "--id", "logged", "-o", "table").out
    assert cli.refused(2, "changes", "--since", "yesterday")


def test_a_line_of_the_log_names_what_was_asked_for_first(cli: Cli, api: httpx.Client) -> None:
    operations = [{"op": "create", "kind": "namespaces", "id": f"named-{n}", "document": {"id": f"named-{n}"}} for n in range(9)]
    assert api.post("/batch", json={"operations": operations}).status_code == 200
    operations = [{"op": "patch", "kind": "namespaces", "id": f"named-{n}", "document": {"labels": {"a": "b"}}} for n in range(9)]
    assert api.post("/batch", json={"operations": operations}).status_code == 200
    updated, created = cli.ok("changes", "--id", "named-7", "--no-headers").out.splitlines()
    assert "update namespaces/named-7 (/labels/a), update namespaces/named-0, update namespaces/named-1 and 6 more" in updated
    assert "create namespaces/named-7, create namespaces/named-0, create namespaces/named-1 and 6 more" in created
    assert "update namespaces/named-8" in cli.ok("changes", "--limit", "1", "-o", "wide").out
    assert cli.ok("changes", "--id", "named-7", "--since", "1h", "-o", "name").out.split()
    assert cli.ok("changes", "--id", "named-7", "--until", "1h30m", "-o", "name").out == ""


def test_one_change_is_shown_as_a_whole_with_those_that_changed_alike_together(cli: Cli, api: httpx.Client) -> None:
    for n in range(12):
        assert api.post("/namespaces", json={"id": f"whole-{n}", "labels": {"old": "x"}}).status_code == 201
    alike = [{"op": "patch", "kind": "namespaces", "id": f"whole-{n}", "document": {"labels": {"a": "b"}}} for n in range(11)]
    other = {"op": "patch", "kind": "namespaces", "id": "whole-11", "document": {"labels": {"old": "y"}}}
    done = api.post("/batch", json={"operations": [*alike, other]}, headers={"X-Reason": "all of them"}).json()
    revision = str(done["results"][0]["revision"])
    head, *rest = cli.ok("changes", revision).out.splitlines()
    assert head.startswith(f"revision {revision}   ")
    assert head.endswith("by write: all of them")
    ids = ", ".join(f"whole-{n}" for n in range(11))
    assert rest == [
        "", f"11 namespaces updated: {ids}", '  + /labels/a: "b"',
        "", "namespaces/whole-11 updated", '  - /labels/old: "x"', '  + /labels/old: "y"',
    ]  # fmt: skip
    shown = cli.on_terminal("changes", revision, size=(80, 100)).out
    assert "whole-7 and 3 more; -o wide names all" in shown
    assert '\x1b[31m  - /labels/old: "x"' in shown
    assert '\x1b[32m  + /labels/old: "y"' in shown
    assert cli.ok("changes", revision, "-o", "json").data["revision"] == int(revision)
    assert cli.refused(2, "changes", revision, "--kind", "namespace")
    assert cli.refused(4, "changes", "999999")


def test_following_the_change_log_prints_changes_as_they_come(cli: Cli) -> None:
    cli.ok("namespace", "create", "followed")
    process = cli.start("changes", "--follow", "--id", "followed", "-o", "json")
    try:
        assert process.stdout
        assert json.loads(process.stdout.readline())["changes"][0]["operation"] == "create"
        cli.ok("namespace", "update", "followed", "--label", "n=1")
        cli.ok("namespace", "update", "followed", "--label", "n=2")
        seen = [json.loads(process.stdout.readline())["changes"][0]["after"]["labels"]["n"] for _ in range(2)]
        assert seen == ["1", "2"]
    finally:
        process.send_signal(signal.SIGINT)  # as people end it; it tells how far it came, too
        process.communicate()


@pytest.mark.parametrize(
    ("form", "shown"),
    [((), "create namespaces/followed-form"), (("-o", "yaml"), "---"), (("-o", "name"), "")],
    ids=["table", "yaml", "name"],
)
def test_changes_are_followed_in_every_form(cli: Cli, form: tuple[str, ...], shown: str) -> None:
    created = cli.ok("namespace", "create", "followed-form", "-o", "json")
    process = cli.start("changes", "--follow", "--id", "followed-form", *form)
    try:
        assert process.stdout
        line = process.stdout.readline().strip()
        assert shown in line
        assert line.isdecimal() == (form == ("-o", "name"))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert created.data["id"] == "followed-form"
    cli.ok("namespace", "delete", "followed-form", "--yes")


def test_overrides_list_every_difference_of_a_cluster(cli: Cli, api: httpx.Client) -> None:
    body = {
        "id": "differing", "cluster_name": "d", "cluster_dns": "differing.example.com", "environment": "qa",
        "platform_components": [{"id": "podinfo", "oci_tag": "v9"}, {"id": "traefik", "enabled": False, "oci_tag": None}],
        "patches": {"podinfo": {"a.b": "c"}},
    }  # fmt: skip
    assert api.post("/clusters", json=body).status_code == 201
    rows = cli.ok("overrides", "--cluster", "differing", "-o", "json").data
    assert [(row["id"], row["field"], row["value"], row["default"]) for row in rows] == [
        ("podinfo", "oci_tag", "v9", "latest"),
        ("podinfo", "patches.a.b", "c", None),
        ("traefik", "enabled", False, True),
    ]
    assert cli.ok("overrides", "--cluster", "differing", "--component", "traefik", "-o", "json").data == rows[2:]
    assert cli.ok("overrides", "--cluster", "differing", "--limit", "2", "-o", "json").data == rows[:2]
    assert "differing" in {
        row["cluster"] for row in cli.ok("overrides", "--component", "podinfo", "--environment", "qa", "-o", "json").data
    }
    assert cli.refused(4, "overrides", "--cluster", "nowhere")


def test_explain_tells_of_kinds_and_fields_also_without_a_server(cli: Cli, offline: Cli) -> None:
    assert "enum" in cli.ok("explain", "cluster.environment").data
    text = offline.ok("explain", "rolebinding.subjects", "-o", "table").out
    assert "one of: User, Group, ServiceAccount" in text
    assert "list of object" in text
    unreachable = offline.but(FLUX_API_URL="http://127.0.0.1:9", FLUX_API_TOKEN="x")
    assert unreachable.ok("explain", "namespace").data["properties"]["labels"]
    assert "not found" in offline.refused(2, "explain", "nothing")[0]
    assert offline.ok("explain", "rolebinding.subjects", "-o", "name").out == "rolebinding.subjects\n"


def test_version_tells_the_servers_too_if_it_answers(cli: Cli, offline: Cli) -> None:
    told = cli.ok("version").data
    assert told["client"] == told["server"]
    assert offline.ok("version").data == {**told, "server": None}
    assert cli.ok("version", "-o", "name").out == told["client"] + "\n"


def test_version_needs_no_token_and_knows_a_server_that_only_reads(cli: Cli, tmp_path: Path) -> None:
    told = cli.ok("version").data
    assert cli.but(FLUX_API_TOKEN=None).ok("version").data == told
    assert cli.but(FLUX_API_TOKEN="wrong").ok("version").data == told
    with live.serving(tmp_path, "/health", API_MODE="read-only") as reader:
        assert cli.but(FLUX_API_URL=reader.url).ok("version").data == told


@pytest.mark.long
def test_version_does_not_wait_for_a_server_that_says_nothing(offline: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert offline.but(FLUX_API_URL=url, FLUX_API_TOKEN="x").ok("version").data["server"] is None


@pytest.mark.long
def test_export_and_import_move_a_fleet(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    told = cli.ok("export", str(file)).data
    assert told["documents"] > 8
    assert cli.ok("export", str(file), "-o", "name").out == f"{file}\n"
    assert file.stat().st_mode & 0o077 == 0
    assert cli.ok("export").out == file.read_text()
    (line,) = cli.refused(2, "import", str(file))
    assert line.endswith("? Say --yes to do it, or --dry-run to see what it would do")
    assert "--merge" in cli.refused(6, "import", str(file), "--yes")[0]
    assert cli.ok("import", "-", "--merge", "--yes", stdin=file.read_text()).data["documents"] == told["documents"]
    damaged = tmp_path / "damaged.json"
    damaged.write_text(re.sub(r'"environment": *"dev"', '"environment": "qa"', file.read_text(), count=1))
    assert "checksum" in cli.refused(3, "import", str(damaged), "--merge", "--yes")[0]
    with live.serving(tmp_path, SEED_FILE="", RESOURCES_DIR=str(Path(__file__).parent / "kinds")) as empty:
        other = Cli(tmp_path, empty.url)
        assert other.ok("import", str(file), "--yes", "-o", "name").out == "1\n"  # the revision
        assert other.ok("cluster", "list", "-o", "json").data == cli.ok("cluster", "list", "-o", "json").data


def test_a_reader_that_goes_away_is_no_error(cli: Cli) -> None:
    process = cli.start("component", "list")
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    assert process.stderr.read() == ""
    assert process.wait() == 141
    process.stderr.close()


def test_tags_show_what_is_off_the_common_one(cli: Cli, api: httpx.Client) -> None:
    entry = {"component_path": "x", "oci_url": "oci://r.example/x"}
    for id, tag in (("tagged-a", "v1.0.0"), ("tagged-b", "v1.0.0"), ("tagged-c", "v1.0.0-1")):
        assert api.post("/platform_components", json={"id": id, **entry, "oci_tag": tag}).status_code == 201
    cluster = {"id": "tagged", "cluster_name": "tagged", "cluster_dns": "tagged.example.com", "environment": "dev"}
    references = [{"id": "tagged-a", "oci_tag": "v1.1.0-rc1"}, {"id": "tagged-b"}]
    assert api.post("/clusters", json={**cluster, "platform_components": references}).status_code == 201
    rows = {row["tag"]: row for row in cli.ok("tags", "-o", "json").data}
    order = list(rows)
    assert order.index("v1.0.0") < order.index("v1.0.0-1") < order.index("v1.1.0-rc1")
    assert rows["v1.0.0-1"]["base"] == "v1.0.0"
    assert "tagged-c" in rows["v1.0.0-1"]["ids"]
    assert rows["v1.1.0-rc1"] | {"ids": ["tagged-a"], "clusters": 1, "catalog": 0, "common": False} == rows["v1.1.0-rc1"]
    assert sum(row["common"] for row in rows.values()) == 1
    assert all(row["catalog"] > 1 for row in rows.values() if row["common"])
    assert cli.refused(2, "tags", "--field", "nothing")


def test_tags_of_a_field_that_is_optional_and_no_text(cli: Cli, api: httpx.Client) -> None:
    for id, weight in (("weighed-a", {"weight": 10}), ("weighed-b", {}), ("weighed-c", {"weight": 9})):
        assert api.post("/agents", json={"id": id, "channel": "x", **weight}).status_code == 201
    rows = cli.ok("tags", "--field", "weight", "-o", "json").data
    assert [(row["tag"], row["ids"]) for row in rows] == [("9", ["weighed-c"]), ("10", ["weighed-a"])]
    assert not any(row["common"] for row in rows), "each is one component's only"


@pytest.mark.long
def test_both_programs_say_one_version(cli: Cli) -> None:
    server = subprocess.run([*live.PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout.split()
    assert cli.ok("--version").out.split() == ["flux-resourceset-cli", __version__]
    assert server == ["flux-resourceset", __version__]
