"""What the Helm chart ships beside its templates: values that keep their schema, figures that exist, and a backup that works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

import live

CHART = live.ROOT / "deploy" / "chart" / "flux-resourceset"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())


def leaves(values: dict[str, Any], schema: dict[str, Any], path: str = "") -> dict[str, bool]:
    """Every value that the schema knows, and whether values.yaml has it."""
    found: dict[str, bool] = {}
    for name, sub in schema["properties"].items():
        if "properties" in sub and name not in ("affinity", "resources"):
            found |= leaves(values.get(name) or {}, sub, f"{path}{name}.")
        elif path + name != "global":
            found[path + name] = name in values
    return found


def test_the_default_values_keep_their_schema_and_are_complete() -> None:
    jsonschema_rs.validate(SCHEMA, VALUES)
    assert [name for name, there in leaves(VALUES, SCHEMA).items() if not there] == []


@pytest.mark.parametrize(
    "values",
    [
        {"podLabels": {"app": "mine"}},
        {"extraEnv": [{"name": "API_MODE", "value": "crud"}]},
        {"extraVolumeMounts": [{"name": "a"}]},
        {"backup": {"keep": 0}},
        {"fullnameOverride": "Not-A-Name"},
        {"tokensFile": {"secret": "misspelled"}},
        {"postgres": {"url": "sqlite:///fleet.db"}},
        {"postgres": {"tls": {"mode": "verify"}}},
        {"postgres": {"maxStaleness": -1}},
        {"read": {"workers": 0}},
        {"crud": {"workers": "two"}},
        {"read": {"autoscaling": {"cpu": "50%"}}},
        {"topologySpread": "Never"},
        {"env": {"DATABASE_PASSWORD_FILE": "/mine"}},
        {"networkPolicy": {"postgresPorts": []}},
    ],
    ids=lambda values: next(iter(values)),
)
def test_values_that_cannot_work_are_refused(values: dict[str, Any]) -> None:
    jsonschema_rs.validate(SCHEMA, VALUES)
    assert not jsonschema_rs.is_valid(SCHEMA, {**VALUES, **values})


# Figures


def named(text: str) -> set[str]:
    return set(re.findall(r"\bflux_resourceset_[a-z_]+", text))


def queries() -> dict[str, str]:
    """The expressions of the dashboard and of the alerts, by where they stand."""
    dashboard = json.loads((CHART / "grafana-dashboard.json").read_text())
    rules = yaml.safe_load((CHART / "prometheus-rules.yaml").read_text())
    return {
        **{f"{panel['title']} {target['refId']}": target["expr"] for panel in dashboard["panels"] for target in panel["targets"]},
        **{variable["name"]: str(variable["query"]) for variable in dashboard["templating"]["list"]},
        **{rule["alert"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]},
    }


def test_dashboard_and_alerts_ask_for_figures_and_labels_that_there_are(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(live.ROOT / "data" / "seed.json")) as server, server.client() as client:
        for path in ("/api/v2/flux/clusters", "/clusters"):
            assert client.get(path).status_code == 200
        told = client.get("/metrics").text
    there = set(re.findall(r"^([a-z_]+)(?:\{| )", told, re.MULTILINE))
    labels = set(re.findall(r'([a-z]+)="', told)) | {"service", "namespace", "pod"}  # Prometheus adds those
    asked = queries()
    assert {place: named(text) - there for place, text in asked.items() if named(text) - there} == {}
    assert set(re.findall(r'([a-z_]+)(?:=~|!~|!=|=)"', " ".join(asked.values()))) <= labels
    assert {name.removesuffix("_bucket") for text in asked.values() for name in named(text)} >= {
        "flux_resourceset_requests_total", "flux_resourceset_request_seconds", "flux_resourceset_revision",
        "flux_resourceset_skipped_references", "flux_resourceset_store_age_seconds",
    }  # fmt: skip


def test_every_query_is_about_one_release() -> None:
    """The chart puts the names of its Services there, so that two releases are not added up."""
    for place, text in queries().items():
        for selector in re.findall(r"flux_resourceset_[a-z_]+(\{[^}]*\})?", text):
            assert 'service=~"flux-api-(read|crud)"' in selector, place


def test_the_panels_do_not_lie_on_each_other() -> None:
    panels = json.loads((CHART / "grafana-dashboard.json").read_text())["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["description"] for panel in panels)


# The backup


def backup(directory: Path, database: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """As the CronJob runs it: with these variables, no token, and a database that it may only read."""
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "BACKUP_DIR": str(directory),
        "BACKUP_KEEP": "3",
        "BACKUP_HISTORY": "true",
        "STORE_BACKEND": "sqlite",
        "DATABASE_URL": f"sqlite://{database}?mode=ro",
        **more,
    }
    return subprocess.run(["sh", "-c", (CHART / "backup.sh").read_text()], env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.long
def test_the_backup_exports_beside_a_running_server_and_keeps_the_newest(tmp_path: Path) -> None:
    place = tmp_path / "backup"
    place.mkdir()
    kept = ["fleet-20260101T000000Z.json", "fleet-20260102T000000Z.json", "fleet-20260103T000000Z.json"]
    for name in [*kept, "fleet-of-somebody-else.json", "notes.txt"]:
        (place / name).write_text("old")
    with live.serving(tmp_path, SEED_FILE=str(live.ROOT / "data" / "seed.json")):
        done = backup(place, tmp_path / "fleet.db")
    assert done.returncode == 0, done.stderr
    assert "removed fleet-20260101T000000Z.json\n" in done.stdout
    there = sorted(path.name for path in place.iterdir())
    assert there[:2] == kept[1:]
    assert there[3:] == ["fleet-of-somebody-else.json", "notes.txt"]
    new = place / there[2]
    assert oct(new.stat().st_mode & 0o777) == "0o600"
    exported = json.loads(new.read_text())
    assert [cluster["id"] for cluster in exported["documents"]["clusters"]] == ["demo-cluster-01"]
    assert len(exported["history"]) == 1


@pytest.mark.long
def test_a_log_that_was_folded_is_backed_up_without_its_history(tmp_path: Path) -> None:
    place = tmp_path / "backup"
    place.mkdir()
    with live.serving(tmp_path, SEED_FILE=str(live.ROOT / "data" / "seed.json")) as server, server.client() as client:
        assert client.patch("/clusters/demo-cluster-01", json={"labels": {"zone": "edge"}}).status_code == 200
        fold = [*live.PROGRAM, "compact", "--before", "2"]
        subprocess.run(fold, env=live.environment(tmp_path), check=True, capture_output=True, timeout=60)
        done = backup(place, tmp_path / "fleet.db")
    assert done.returncode == 0, done.stderr
    (new,) = place.iterdir()
    exported = json.loads(new.read_text())
    assert (exported["revision"], "history" in exported) == (2, False)


@pytest.mark.long
def test_a_backup_that_fails_removes_nothing_and_says_so(tmp_path: Path) -> None:
    place = tmp_path / "backup"
    place.mkdir()
    names = [f"fleet-2026010{day}T000000Z.json" for day in range(1, 7)]
    for name in names:
        (place / name).write_text("old")
    done = backup(place, tmp_path / "absent.db", BACKUP_HISTORY="false")
    assert done.returncode != 0
    assert "absent.db" in done.stderr
    assert sorted(path.name for path in place.iterdir()) == names
