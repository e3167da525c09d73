"""The way to PostgreSQL by TLS: who answers is verified, and a certificate stands for a password."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import live
import postgres_server
from processes.test_postgres import run

from .certificates import Authority

CERTIFIED = "certified"  # a role that needs a certificate


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.create(tmp_path_factory.mktemp("database-pki"))


@pytest.fixture(scope="module")
def database(authority: Authority) -> Iterator[postgres_server.Server]:
    """It has a certificate of the authority for 127.0.0.1, and takes nobody but by TLS."""
    bin = postgres_server.binaries()
    built = subprocess.run([bin / "pg_config", "--configure"], capture_output=True, text=True, check=True).stdout
    if "openssl" not in built:
        pytest.skip("this PostgreSQL was built without TLS, as that of the development requirement is; set TEST_POSTGRES_BIN")
    pair, home = authority.server("database", ["IP:127.0.0.1"]), postgres_server.directory()
    for path in (pair.certificate, pair.key, authority.own.certificate):
        postgres_server.give(Path(shutil.copy(path, home)))
    (home / pair.key.name).chmod(0o600)
    files = {"ssl_cert_file": pair.certificate, "ssl_key_file": pair.key, "ssl_ca_file": authority.own.certificate}
    options = {"ssl": "on", **{name: str(home / path.name) for name, path in files.items()}}
    with postgres_server.running(home=home, options=options) as server:
        server.execute(f"CREATE ROLE {CERTIFIED} LOGIN SUPERUSER")
        access = server.data / "pg_hba.conf"
        access.write_text(f"hostssl all {CERTIFIED} 127.0.0.1/32 cert\nhostssl all all 127.0.0.1/32 trust\n")
        server.execute("SELECT pg_reload_conf()")
        yield server


def ways(server: postgres_server.Server, name: str) -> set[tuple[str, bool]]:
    """Who is connected to a database for us, and whether by TLS."""
    question = (
        "SELECT usename, ssl FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) WHERE application_name = 'flux-resourceset'"
    )
    return {(str(role), bool(ssl)) for role, ssl in server.execute(f"{question} AND datname = '{name}'")}


def trusting(authority: Authority, url: str, **parameters: str | Path) -> str:
    told = {"sslmode": "verify-full", "sslrootcert": authority.own.certificate, **parameters}
    return f"{url}?{'&'.join(f'{name}={value}' for name, value in told.items())}"


def test_servers_verify_who_answers_and_every_connection_is_encrypted(
    authority: Authority, database: postgres_server.Server, tmp_path: Path
) -> None:
    with database.database() as url:
        with live.serving(tmp_path, DATABASE_URL=trusting(authority, url)) as writer, writer.client() as api:
            assert api.post("/namespaces", json={"id": "a"}).status_code == 201
            assert ways(database, url.rpartition("/")[2]) == {(postgres_server.ADMINISTRATOR, True)}
        by_variables = {"PGSSLMODE": "verify-full", "PGSSLROOTCERT": str(authority.own.certificate)}
        assert run(tmp_path, url, "verify", **by_variables).stdout.startswith("verified to revision 1")


def test_a_certificate_stands_for_a_password(authority: Authority, database: postgres_server.Server, tmp_path: Path) -> None:
    pair = authority.client(CERTIFIED)
    with database.database() as url:
        name = url.rpartition("/")[2]
        own = database.url(name, CERTIFIED)
        safe = trusting(authority, own, sslcert=pair.certificate, sslkey=pair.key)
        with live.serving(tmp_path, DATABASE_URL=safe) as writer, writer.client() as api:
            assert api.post("/namespaces", json={"id": "a"}).status_code == 201
            assert ways(database, name) == {(CERTIFIED, True)}
        refused = run(tmp_path, trusting(authority, own), "verify")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "refuses the login" in refused.stderr


def test_an_impostor_and_a_way_without_tls_are_refused(
    authority: Authority, database: postgres_server.Server, tmp_path: Path
) -> None:
    other = Authority.create(tmp_path / "other-pki")
    with database.database() as url:
        unknown = run(tmp_path, trusting(other, url), "verify")
        misnamed = run(tmp_path, trusting(authority, url.replace("127.0.0.1", "localhost")), "verify")
        plain = run(tmp_path, f"{url}?sslmode=disable", "verify")
    assert [each.returncode for each in (unknown, misnamed, plain)] == [2, 2, 2]
    assert "certificate verify failed" in unknown.stderr
    assert 'does not match host name "localhost"' in misnamed.stderr
    assert "refuses the login" in plain.stderr
