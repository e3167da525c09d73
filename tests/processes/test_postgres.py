"""Servers and commands on PostgreSQL: a part of what make test-postgres runs, and what is said when it cannot be used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import live
import postgres_server
import zygote
from api.fleets import DEMO_DNS, SEED, assert_problem, inputs, make


@pytest.fixture
def url() -> Iterator[str]:
    with postgres_server.shared().database() as url:
        yield url


def run(directory: Path, url: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {"DATABASE_URL": url, "DATABASE_MODE": "rwc", "AUTH_TOKEN": live.READ}
    env = {"PATH": os.environ["PATH"], **zygote.MEASURED, **settings, **environment}
    return subprocess.run(
        [*live.PROGRAM, *words], cwd=directory, env=env, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )


def test_what_one_writer_acknowledges_the_others_have(url: str, tmp_path: Path) -> None:
    with (
        live.serving(tmp_path, DATABASE_URL=url, SEED_FILE=str(SEED)) as one,
        live.serving(tmp_path, DATABASE_URL=url) as other,
        live.serving(tmp_path, DATABASE_URL=url, API_MODE="read-only") as reader,
        one.client() as first,
        other.client() as second,
        reader.client(live.READ) as flux,
    ):
        assert len(inputs(flux, DEMO_DNS, "namespaces")) == 3
        assert first.delete("/clusters/demo-cluster-01/namespaces/podinfo").status_code == 200
        assert len(inputs(first, DEMO_DNS, "namespaces")) == 2  # its own at once
        live.until(lambda: len(inputs(flux, DEMO_DNS, "namespaces")) == 2 and len(inputs(second, DEMO_DNS, "namespaces")) == 2)

        # what was read here may be changed by who writes there, and is noticed
        etag = second.get("/namespaces/podinfo").headers["ETag"]
        assert first.patch("/namespaces/podinfo", json={"labels": {"a": "b"}}).status_code == 200
        stale = second.patch("/namespaces/podinfo", json={"labels": {"c": "d"}}, headers={"If-Match": etag})
        assert_problem(stale, 412, "precondition-failed")

        # a request that was carried out there gets its first answer here
        key = {"Idempotency-Key": "once"}
        batch = {"operations": [{"op": "create", "kind": "namespaces", "id": "n", "document": {}}]}
        answers = [api.post("/batch", json=batch, headers=key) for api in (first, second)]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert answers[0].content == answers[1].content


def test_writers_at_once_leave_a_log_without_gaps(url: str, tmp_path: Path) -> None:
    with live.serving(tmp_path, DATABASE_URL=url) as one, live.serving(tmp_path, DATABASE_URL=url) as other:

        def write(server: live.Server, prefix: str) -> None:
            with server.client() as api:
                for number in range(8):
                    make(api, "namespaces", f"{prefix}{number}")

        writing = [threading.Thread(target=write, args=pair) for pair in ((one, "a"), (other, "b"))]
        for thread in writing:
            thread.start()
        for thread in writing:
            thread.join()
        with one.client() as api:
            live.until(lambda: len(api.get("/namespaces").json()) == 16)
            assert [entry["revision"] for entry in api.get("/changes?limit=100").json()] == list(range(16, 0, -1))


@pytest.mark.long
def test_every_command_takes_a_url(url: str, tmp_path: Path) -> None:
    assert run(tmp_path, url, "import", str(_fleet(tmp_path)), "--yes").returncode == 0
    assert run(tmp_path, url, "verify").stdout.startswith("verified to revision")
    exported = json.loads(run(tmp_path, url, "export", "-").stdout)
    assert [each["id"] for each in exported["documents"]["namespaces"]] == ["a"]
    retired = run(tmp_path, url, "retire-kind", "namespaces", "--yes")
    assert retired.returncode == 0, retired
    assert run(tmp_path, url, "compact", "--before", "2").stdout.startswith("folded 1 entries")
    assert run(tmp_path, url, "verify").stdout.startswith("verified from the base at revision 1")


def _fleet(directory: Path) -> Path:
    source = directory / "source"
    source.mkdir()
    with live.serving(source, DATABASE_URL=f"sqlite://{source}/fleet.db") as server, server.client() as api:
        make(api, "namespaces", "a")
    done = run(source, f"sqlite://{source}/fleet.db", "export", str(directory / "fleet.json"))
    assert done.returncode == 0, done
    return directory / "fleet.json"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://jane:hush-hush@127.0.0.1:none/x", "DATABASE_URL: PostgreSQL cannot read it"),
        ("postgres://jane:hush-hush@127.0.0.1/x?sslmod=require", "DATABASE_URL: PostgreSQL knows no parameter 'sslmod'"),
        ("mysql://jane:hush-hush@127.0.0.1/x", "DATABASE_URL is 'mysql://…@127.0.0.1/x'; it must be sqlite://"),
    ],
)
def test_a_wrong_url_ends_the_start_with_one_line(tmp_path: Path, url: str, words: str) -> None:
    done = run(tmp_path, url)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr
    assert "hush" not in done.stderr


def test_a_refused_login_ends_a_writer_with_one_line_and_leaves_a_reader_not_ready(tmp_path: Path) -> None:
    server = postgres_server.shared()
    wrong = f"postgresql://{postgres_server.PROTECTED}:hush-hush@127.0.0.1:{server.port}/postgres"
    done = run(tmp_path, wrong, API_MODE="crud", CRUD_AUTH_TOKEN=live.WRITE, LISTEN_ADDR=f"127.0.0.1:{live.free_port()}")
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, done.stdout) == (2, "")
    assert "refuses the login" in last
    assert "hush" not in done.stderr
    with live.serving(tmp_path, "/health", DATABASE_URL=wrong, API_MODE="read-only") as reader, reader.client(live.READ) as flux:
        assert flux.get("/ready").status_code == 503
        assert "hush" not in flux.get("/ready").text + reader.log.read_text()


def test_without_the_driver_the_extra_is_named(tmp_path: Path) -> None:
    script = "import sys; sys.modules['psycopg'] = None; from flux_resourceset import server; sys.exit(server.main(['verify']))"
    env = {"PATH": os.environ["PATH"], **zygote.MEASURED, "DATABASE_URL": "postgresql://127.0.0.1/x"}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pip install 'flux-resourceset[server,postgres]'" in done.stderr
