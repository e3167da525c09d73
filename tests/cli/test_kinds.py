"""Kinds from a directory: groups, verbs and options with no code for them; and the cache of what the server told."""

from __future__ import annotations

import io
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import live
from cli.command import Cli
from flux_resourceset.cli import known_kinds
from flux_resourceset.cli.output import help_text, printing
from flux_resourceset.cli.parsing import field_options, grammar, kind_commands


def test_a_kind_of_the_server_has_a_group_with_options_from_its_schema(cli: Cli, offline: Cli) -> None:
    made = cli.ok(
        "network-policy", "create", "allow-monitoring", "--target-namespace", "monitoring", "--priority", "3", "--zone", "a",
        "--zones", "b", "--ingress-rule", '{"from_namespace": "m", "port": 9090}', "--cluster", "demo-cluster-01",
    ).data  # fmt: skip
    assert made["ingress_rules"] == [{"from_namespace": "m", "port": 9090}]
    assert (made["priority"], made["zones"]) == (3, ["a", "b"])
    assert "allow-monitoring" in cli.ok("inputs", "demo-cluster-01.k8s.example.com", "network-policies").out
    assert cli.ok("network_policies", "list", "-o", "name").out == "network_policies/allow-monitoring\n"
    assert "network-policy" in cli.ok("--help").out
    assert "--target-namespace" in cli.ok("network-policy", "create", "--help").out
    assert "--ingress-rule JSON" in cli.ok("help", "network-policy", "create").out
    assert "--ingress-rule JSON" in cli.ok("help", "--debug", "network-policy", "-ojson", "create").out
    cli.ok("network-policy", "unassign", "allow-monitoring", "--cluster", "demo-cluster-01")
    assert offline.refused(2, "network-policy", "list")


def test_hints_give_a_kind_the_verbs_of_components(cli: Cli, api: httpx.Client) -> None:
    cli.ok("agent", "create", "edge", "--channel", "stable", "--field-reason", "because", "--cluster", "demo-cluster-01")
    assert api.get("/agents/edge").json()["reason"] == "because"
    cli.ok("agent", "disable", "edge", "--cluster", "demo-cluster-01")
    cli.ok("agent", "pin", "edge", "--cluster", "demo-cluster-01", "--channel", "beta")
    cli.ok("agent", "assign", "edge", "--cluster", "demo-cluster-01", "--size", "4")
    cli.ok("agent", "patch", "edge", "--cluster", "demo-cluster-01", "--set", "a=b")
    reference = {"id": "edge", "enabled": False, "channel": "beta", "size": 4}
    assert api.get("/clusters/demo-cluster-01/agents/edge").json() == reference
    rows = cli.ok("overrides", "--agent", "edge", "-o", "json").data
    assert [(row["field"], row["value"], row["default"]) for row in rows] == [
        ("enabled", False, True), ("channel", "beta", "stable"), ("size", 4, 1), ("patches.a", "b", None),
    ]  # fmt: skip
    cli.ok("agent", "enable", "edge", "--cluster", "demo-cluster-01")
    cli.ok("agent", "unpin", "edge", "--cluster", "demo-cluster-01")
    assert api.get("/clusters/demo-cluster-01/agents/edge").json() == {"id": "edge", "enabled": True, "size": 4}
    assert "has no command 'pin'" in cli.refused(2, "network-policy", "pin", "x")[0]
    cli.ok("agent", "unassign", "edge", "--cluster", "demo-cluster-01")


def test_the_kinds_are_asked_for_anew_but_sent_only_once(server: live.Server, tmp_path: Path) -> None:
    fresh = Cli(tmp_path, server.url)
    assert "< 200" in fresh.ok("--debug", "agent", "list").err
    assert "< 304" in fresh.ok("--debug", "agent", "list").err
    for file in (tmp_path / ".cache" / "flux-resourceset").iterdir():
        file.write_text("{broken")
    assert fresh.ok("agent", "list").code == 0


def test_help_and_completion_know_the_kinds_of_a_server_that_was_never_asked(server: live.Server, tmp_path: Path) -> None:
    for number, words in enumerate((("--help",), ("agent", "--help"), ("__complete", "age"))):
        assert "agent" in Cli(tmp_path / str(number), server.url).ok(*words).out


@pytest.mark.long
def test_help_does_without_a_server_that_says_nothing(offline: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = offline.but(FLUX_API_URL=url, FLUX_API_TOKEN="x").ok("--help")
    assert "\n  component " in done.out
    assert done.err == ""


def test_help_reads_no_yaml_and_no_schemas(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "flux_resourceset.cli", "component", "create", "--help"]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "flux_resourceset.cli.parsing.kind_commands" in imported
    assert "flux_resourceset.kinds.fields" in imported  # the one part of kinds that is light
    assert not imported & {"yaml", "jsonschema_rs", "importlib.resources", "socket", "flux_resourceset.kinds.model"}


def test_the_printed_examples_of_create_are_accepted(cli: Cli) -> None:
    for group in ("agent", "network-policy", "cluster", "freeze", "namespace", "component", "rolebinding"):
        examples = cli.ok(group, "create", "--help").out.partition("Examples:\n")[2].splitlines()
        words = shlex.split(examples[0])[1:]
        words[2] = f"example-{group}"
        dns = [f"{group}.example.com" if word.endswith(".k8s.example.com") else word for word in words]
        assert cli.ok(*dns, "--dry-run").data["results"][0]["change"] == "create"


def test_help_of_the_built_in_kinds_needs_no_server_and_no_home(offline: Cli) -> None:
    for cli in (offline, offline.but(HOME=None), offline.but(XDG_CACHE_HOME="/dev/null/nowhere")):
        assert "--component-path" in cli.ok("component", "create", "--help").out
    help = offline.ok("--help").out
    for word in ("cluster", "namespace", "component", "rolebinding", "apply", "config"):
        assert f"\n  {word} " in help
    assert "\n  demo " not in help
    assert "add-namespace" in offline.ok("demo", "--help").out
    assert offline.ok("component", "--help").out.count("\n") > 12


def test_what_is_known_without_a_server_is_what_a_plain_server_tells(tmp_path: Path) -> None:
    from flux_resourceset.cli import known_kinds

    with live.serving(tmp_path, STORE_BACKEND="memory") as server, server.client(live.READ) as api:
        told = api.get("/kinds").json()
    assert known_kinds.packaged() == told


@pytest.mark.long
def test_completion_offers_commands_options_ids_and_files(cli: Cli, offline: Cli) -> None:
    def offered(*words: str, of: Cli = offline) -> list[str]:
        return of.ok("__complete", *words).out.split()

    assert offered("name") == ["namespace"]
    assert offered("namespace", "as") == ["assign"]
    assert offered("namespace", "create", "x", "--ann") == ["--annotation"]
    assert offered("-o", "y") == ["yaml"]
    assert offered("-o", "json", "namespace", "un") == ["unassign"]
    assert offered("apply", "-f", "") == [":files"]
    assert offered("render", "x", "-o", "") == ["json", "yaml", "name"], "the formats that it has"
    assert offered("render", "x", "--directory", "") == [":files"]
    assert offered("namespace", "list", "-o", "j") == ["json", "jsonpath="]
    assert offered("--", "-o", "y") == [], "-- ends the options"
    for words in (("--", "-"), ("namespace", "assign", "--", "--"), ("namespace", "assign", "x", "--", "")):
        assert offered(*words) == [], "nothing behind -- is an option"
    assert offered("--", "name") == ["namespace"]
    assert "--cluster" in offered("namespace", "assign", "--")
    assert "--cluster" in offered("namespace", "assign", "x", "")
    assert offered("namespace", "assign", "x", "-o", "--", "--al") == ["--all"], "here -- is a value"
    assert offered("namespace", "-o", "y") == ["yaml"], "also between the words"
    assert offered("nothing", "") == offered("namespace", "nothing", "") == [], "no such command"
    assert "cluster" in offered(), "a line without words"
    assert offered("help", "name") == ["namespace"]
    assert offered("help", "namespace", "as") == ["assign"]
    for words in (("namespace", "get", "x", "--help"), ("--help", "namespace", "get", "x"), ("help", "namespace", "get", "x")):
        assert "--output" in offered(*words, "--"), "who asked for help may go on"
    assert offered("completion", "") == ["bash", "zsh", "fish"]
    assert offered("explain", "clu") == ["cluster"]
    assert offered("inputs", "dns", "role") == ["rolebindings"]
    assert offered("cluster", "get", "") == []  # nobody to ask
    assert offered("cluster", "get", "demo", of=cli) == ["demo-cluster-01"]
    assert offered("namespace", "assign", "x", "--cluster", "demo", of=cli) == ["demo-cluster-01"]
    assert offered("age", of=cli) == ["agent"]
    assert "--dry-run" in offered("namespace", "delete", "x", "")
    assert "podinfo" in offered("namespace", "delete", "x", "", of=cli)
    assert offered("get", "comp") == ["component"]
    assert offered("get", "cl", "demo", of=cli) == ["demo-cluster-01"]
    assert offered("describe", "cluster", "demo", of=cli) == ["demo-cluster-01"]
    assert "--decommissioned" in offered("get", "cluster", "--")
    environments = ["dev", "qa", "uat", "prod"]
    assert offered("apply", "--environment", "") == environments
    assert offered("cluster", "list", "--environment", "=") == environments, "bash makes three words of --environment=prod"
    assert offered("cluster", "list", "--environment", "=", "p") == ["prod"]
    assert offered("cluster", "list", "--environment", "=", "prod", "--sel") == ["--selector"]
    assert offered("cluster", "list", "--environment=p") == ["--environment=prod"], "other shells make one"
    assert offered("cluster", "list", "--output=ya") == ["--output=yaml"]
    assert offered("apply", "--filename=") == [":files"]
    assert offered("cluster", "list", "=") == []
    assert offered("--context", "") == []
    offline.ok(
        "config", "set-context", "home", "--url", "http://127.0.0.1:1", "--token", "-", "--no-verify", stdin="a-token-of-mine"
    )
    assert offered("--context", "") == ["home"]
    wrong = offline.home / "wrong"
    (wrong / "flux-resourceset").mkdir(parents=True)
    (wrong / "flux-resourceset" / "config.yaml").write_text("[")
    assert offered("--context", "", of=offline.but(XDG_CONFIG_HOME=str(wrong))) == [], "a configuration that is none"


def test_the_completion_scripts_are_accepted_by_their_shells(offline: Cli, tmp_path: Path) -> None:
    import shutil

    for shell in ("bash", "zsh", "fish"):
        script = offline.ok("completion", shell).out
        assert "flux-resourceset-cli __complete" in script
        if shutil.which(shell):
            (tmp_path / shell).write_text(script)
            subprocess.run([shell, "-n", str(tmp_path / shell)], check=True)


def test_a_view_without_a_resourceset_makes_nothing_and_says_so(cli: Cli) -> None:
    done = cli.ok("render", "demo-cluster-01", "--view", "agents", "--engine", "builtin")
    assert "note: agents has no ResourceSet, so nothing comes of it" in done.err
    assert "0 objects" in done.err


def test_help_fits_a_narrow_terminal(cli: Cli) -> None:
    for words in (("cluster", "list"), ("simulate",), ("component", "create")):
        lines = cli.but(NO_COLOR="1").on_terminal(*words, "--help").out.splitlines()
        assert "Options:" in lines
        assert [line for line in lines[1:] if len(line) > 60 and "flux-resourceset-cli" not in line] == []


def test_help_puts_the_text_below_a_name_that_is_too_long_for_its_column() -> None:
    stream = io.StringIO()
    option = grammar.Option(f"--{'long' * 10}", "What it does.", "VALUE")
    help_text.show(printing.Output(stream, "table", {}), grammar.Command(("do",), "Do it.", "", options=(option,)))
    lines = stream.getvalue().splitlines()
    place = lines.index(f"      --{'long' * 10} VALUE")
    assert lines[place + 1] == f"{' ' * 38}What it does."


@pytest.mark.parametrize(
    ("name", "option"),
    [("policies", "--policy"), ("addresses", "--address"), ("boxes", "--box"), ("labels", "--label"), ("access", "--access")],
)
def test_an_option_for_many_has_the_name_of_one(name: str, option: str) -> None:
    (field,) = field_options.fields({"id": {}, name: {"type": "array", "items": {"type": "string"}}}, ())
    assert field.option.name == option


def test_a_plural_gives_way_to_the_name_of_another_kind() -> None:
    packaged = known_kinds.packaged()
    namespaces = next(item for item in packaged if item["kind"] == "namespaces")
    other = {**namespaces, "kind": "components", "singular": "part", "short": "components"}
    every = known_kinds.Kinds([*packaged, other])
    found = {word: every.find(word) for word in ("components", "component", "part", "clusters", "cluster")}
    assert {word: kind.name if kind else None for word, kind in found.items()} == {
        "components": "components", "component": "platform_components", "part": "components",
        "clusters": "clusters", "cluster": "clusters",
    }  # fmt: skip
    assert [kind.plural for kind in known_kinds.Kinds(packaged)] == [None, None, None, "components", None]


def test_the_example_of_a_switch_is_the_switch_alone() -> None:
    namespaces = next(item for item in known_kinds.packaged() if item["kind"] == "namespaces")
    (kind,) = known_kinds.Kinds([{**namespaces, "schema": {
        "required": ["id", "is_open"], "properties": {"id": {"type": "string", "example": "a"}, "is_open": {"type": "boolean"}},
    }}])  # fmt: skip
    group, _ = kind_commands.groups(known_kinds.Kinds([kind.data]), ())
    commands = {command.words[1]: command for command in group.commands}
    assert commands["create"].examples[0].endswith(" create a --is-open")
