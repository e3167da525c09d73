"""What is PostgreSQL's own: its tables, who may do what, and what happens when it does not answer."""

from __future__ import annotations

import contextlib
import gc
import logging
import threading
import weakref
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

import live
import loopback_proxy
import postgres_server
from contract.entries import bodies, commit, create, entry, update
from flux_resourceset import errors
from flux_resourceset.changes import Head, Query
from flux_resourceset.store import opening, postgres, postgres_connections, postgres_schema, postgres_watch
from flux_resourceset.store.postgres import PostgresStore


@pytest.fixture
def server() -> postgres_server.Server:
    return postgres_server.shared()


@pytest.fixture
def url(server: postgres_server.Server) -> Iterator[str]:
    """Of a database with an empty store."""
    with server.store() as url:
        yield url


@pytest.fixture
def bare(server: postgres_server.Server) -> Iterator[str]:
    """Of a database without a store."""
    with server.database() as url:
        yield url


@contextlib.contextmanager
def opened(url: str, **options: Any) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres_connections.target(url), **options)
    try:
        yield store
    finally:
        store.close()


@contextlib.contextmanager
def asking(url: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """As an administrator."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SET search_path = flux_resourceset")
        yield db


def name(url: str) -> str:
    return url.rpartition("/")[2]


# The tables


TABLES = """
    SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default
    FROM information_schema.columns WHERE table_schema = 'flux_resourceset' ORDER BY 1, ordinal_position
"""
CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'flux_resourceset'::regnamespace ORDER BY 1, 2
"""
INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'flux_resourceset' ORDER BY 1"


def schema(url: str) -> list[list[tuple[Any, ...]]]:
    with asking(url) as db:
        return [db.execute(query.encode()).fetchall() for query in (TABLES, CONSTRAINTS, INDEXES)]


def test_the_migrations_equal_the_schema(url: str, bare: str) -> None:
    whole = (resources.files("flux_resourceset.store") / "sql" / "postgres.sql").read_text()
    with asking(bare) as db:
        db.execute("CREATE SCHEMA flux_resourceset")
        db.execute(whole.encode())
    assert schema(url) == schema(bare)
    assert len(schema(url)[0]) > 50


def test_the_tables_are_in_a_schema_of_their_own(url: str) -> None:
    with asking(url) as db:
        found = db.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname !~ '^(pg_|information_schema)'"
        ).fetchall()
    assert {schema for schema, _ in found} == {"flux_resourceset"}
    assert {"migrations", "documents", "entries", "changes", "tombstones", "memos", "identity"} <= {table for _, table in found}


def test_writers_that_start_at_once_make_one_store(bare: str) -> None:
    made: list[PostgresStore] = []
    target = postgres_connections.target(bare)
    threads = [threading.Thread(target=lambda: made.append(PostgresStore(target))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({store.epoch() for store in made}) == 1
    for store in made:
        store.close()


def test_a_newer_schema_is_refused_by_writers_and_doubted_by_readers(url: str) -> None:
    with opened(url) as store, opened(url, read_only=True) as reader:
        before = reader.version()
        with asking(url) as db:
            db.execute("INSERT INTO migrations (number) VALUES (99)")
        try:
            with pytest.raises(errors.Doubt, match="schema 99, newer"):
                PostgresStore(postgres_connections.target(url))
            for refused in (reader.snapshot, reader.head, store.begin):
                with pytest.raises(errors.Doubt, match="run the same release as the writer"):
                    refused()
            live.until(lambda: reader.version() != before)
        finally:
            with asking(url) as db:
                db.execute("DELETE FROM migrations WHERE number = 99")


@pytest.mark.long
def test_a_migration_waits_for_who_reads_and_locks_nobody_out(bare: str, server: postgres_server.Server) -> None:
    steps = [*postgres_schema.migrations(), "ALTER TABLE documents ADD COLUMN more text"]

    def migrate() -> None:
        with contextlib.closing(postgres_connections.target(bare).connect()) as connection:
            postgres_schema.prepare(connection, create=False, steps=steps)

    def waits() -> bool:
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'ALTER TABLE documents%'"
        return bool(server.execute(waiting))

    with opened(bare) as store, opened(bare, read_only=True) as reader:
        commit(store, entry(1, create("n", "a")))
        migrating = threading.Thread(target=migrate)
        with reader._reading() as db:
            db.execute("SELECT * FROM documents").fetchall()
            migrating.start()
            for _ in range(3):
                live.until(waits)
                assert bodies(reader, "n") == {"a": {"id": "a"}}
            assert migrating.is_alive()
        migrating.join(30)
        with pytest.raises(errors.Doubt, match="has schema 3 and this program wants 2"):
            reader.head()


def test_a_store_that_vanished_is_not_silently_begun_anew(url: str, server: postgres_server.Server) -> None:
    open_store = opening.opener(opening.location(url), writing=True)
    with contextlib.closing(open_store()):
        server.execute("ALTER SCHEMA flux_resourceset RENAME TO elsewhere", name(url))
    try:
        with pytest.raises(errors.Doubt, match="restore it from a backup"):
            open_store()
    finally:
        server.execute("ALTER SCHEMA elsewhere RENAME TO flux_resourceset", name(url))


# Stores that are lost

LOSSES = {
    "tables without rows": f"TRUNCATE migrations, log_head, {', '.join(postgres_server.TABLES)}",
    "no identity": "TRUNCATE identity",
    "a log that lost its newest entry": "DELETE FROM changes WHERE revision = 2; DELETE FROM entries WHERE revision = 2",
    "documents that are gone": "DELETE FROM documents",
    "no registered end": "TRUNCATE log_head",
    "a table that is gone": "DROP TABLE documents",
    "no record of the schema": "DROP TABLE migrations",
}


def lose(url: str, loss: str) -> None:
    with opened(url) as store:
        commit(store, entry(1, create("n", "a")), entry(2, create("n", "b")))
    with asking(url) as db:
        db.execute(LOSSES[loss].encode())


@pytest.mark.long
@pytest.mark.parametrize("create_tables", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_store_is_refused_also_by_who_may_create_one(bare: str, loss: str, create_tables: bool) -> None:
    lose(bare, loss)
    with pytest.raises(errors.Doubt), opened(bare, create=create_tables) as store:
        store.snapshot()
    with pytest.raises(errors.Doubt), opened(bare, read_only=True) as reader:
        reader.snapshot()


@pytest.mark.long
@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_left_of_a_lost_store_is_set_aside(bare: str, server: postgres_server.Server, loss: str) -> None:
    for number in (1, 2):
        lose(bare, loss)
        with opened(bare, create=False, begin_anew=True) as store:
            assert (store.head().revision, store.verified().fault) == (0, None)
        kept = f"SELECT 1 FROM pg_tables WHERE schemaname = 'flux_resourceset_lost_{number}'"
        assert server.execute(kept, name(bare))
    server.execute("DROP SCHEMA flux_resourceset_lost_1 CASCADE; DROP SCHEMA flux_resourceset_lost_2 CASCADE", name(bare))


@pytest.mark.long
def test_a_lost_store_is_set_aside_also_when_an_earlier_one_was_dropped(bare: str, server: postgres_server.Server) -> None:
    for _ in range(2):
        lose(bare, "no identity")
        with opened(bare, begin_anew=True):
            pass
    server.execute("DROP SCHEMA flux_resourceset_lost_1 CASCADE", name(bare))
    lose(bare, "no identity")
    with opened(bare, begin_anew=True) as store:
        assert store.head().revision == 0
    kept = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'flux\\_resourceset\\_lost%' ORDER BY 1"
    assert server.execute(kept, name(bare)) == [("flux_resourceset_lost_2",), ("flux_resourceset_lost_3",)]
    server.execute("DROP SCHEMA flux_resourceset_lost_2 CASCADE; DROP SCHEMA flux_resourceset_lost_3 CASCADE", name(bare))


def test_a_store_that_another_process_has_begun_meanwhile_is_not_set_aside(
    bare: str, server: postgres_server.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose(bare, "no identity")
    is_lost = postgres_schema._is_lost
    heads: list[Head] = []

    def judge_late(connection: postgres_connections.PatientConnection) -> bool:
        lost = is_lost(connection)
        if lost and not heads:
            monkeypatch.undo()
            with opened(bare, begin_anew=True) as first:
                commit(first, entry(1, create("n", "a")))
                heads.append(first.head())
        return lost

    monkeypatch.setattr(postgres_schema, "_is_lost", judge_late)
    with opened(bare, begin_anew=True) as store:
        assert [store.head()] == heads
    server.execute("DROP SCHEMA flux_resourceset_lost_1 CASCADE", name(bare))


def test_a_whole_store_is_never_begun_anew(bare: str) -> None:
    with opened(bare) as store:
        commit(store, entry(1, create("n", "a")))
        before = store.head()
    with opened(bare, begin_anew=True) as store:
        assert store.head() == before


def test_a_store_is_made_only_where_that_was_asked_for(bare: str, server: postgres_server.Server) -> None:
    with pytest.raises(errors.Doubt, match=r"there is no fleet in the database .*mode=rwc"):
        PostgresStore(postgres_connections.target(bare), create=False)
    assert server.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'flux_resourceset'", name(bare)) == []
    with opened(bare, create=False, begin_anew=True) as store:
        assert store.head().revision == 0


# Who, and in which words


def test_a_reader_needs_usage_and_select_only(url: str, server: postgres_server.Server) -> None:
    server.execute("DROP ROLE IF EXISTS looker", name(url))
    server.execute("CREATE ROLE looker LOGIN", name(url))
    theirs = url.replace("postgres@", "looker@")
    try:
        with opened(url) as store, opened(theirs, read_only=True) as reader:
            commit(store, entry(1, create("n", "a")))
            with pytest.raises(errors.Doubt, match="grant USAGE and SELECT"):
                reader.snapshot()
            server.execute("GRANT USAGE ON SCHEMA flux_resourceset TO looker", name(url))
            server.execute("GRANT SELECT ON ALL TABLES IN SCHEMA flux_resourceset TO looker", name(url))
            assert bodies(reader, "n") == {"a": {"id": "a"}}
            assert reader.verified().fault is None
            commit(store, entry(2, create("n", "b")))
            live.until(lambda: reader.version() == store.version())
            with pytest.raises(errors.Doubt, match="does not permit"):
                reader.begin()
    finally:
        server.execute("DROP OWNED BY looker; DROP ROLE looker", name(url))


def test_another_encoding_is_refused(server: postgres_server.Server) -> None:
    url = server.create("ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    for read_only in (False, True):
        with pytest.raises(errors.Doubt, match="encoding LATIN1; it must be UTF8"):
            PostgresStore(postgres_connections.target(url), read_only=read_only)
    server.drop(url)


def test_the_collation_does_not_matter(server: postgres_server.Server) -> None:
    """Where the server has another one, it would put a before B."""
    has_icu = server.execute("SELECT count(*) FROM pg_collation WHERE collname = 'en-US-x-icu'") == [(1,)]
    url = server.create("TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'" if has_icu else "")
    ids = ["B", "Z", "a", "b", "z", "ä"]
    with opened(url) as store:
        commit(store, entry(1, *(create("n", id) for id in reversed(ids))))
        assert list(bodies(store, "n")) == ids
        assert store.verified().fault is None
        with asking(url) as db:
            told = db.execute(
                "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'flux_resourceset'"
                " AND data_type = 'text' AND column_name IN ('kind', 'id', 'dns', 'time', 'manager', 'key', 'endpoint')"
                " AND collation_name IS DISTINCT FROM 'C'"
            ).fetchall()
        assert told == []
    server.drop(url)


def test_a_text_that_postgresql_cannot_hold_is_not_found(url: str) -> None:
    with opened(url) as store:
        commit(store, entry(1, create("n", "a")))
        assert list(store.find(Query(actor="\0"), 10)) == []
        assert store.document_at("n", "a\0", 1) is None
        assert store.applied([("n", "\0")]) == {}


# What is kept, and how surely


@pytest.mark.parametrize(
    ("configured", "wanted"), [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")]
)
def test_a_commit_is_on_the_disk_whatever_the_database_says(
    url: str, server: postgres_server.Server, configured: str, wanted: str
) -> None:
    server.execute(f"ALTER DATABASE {name(url)} SET synchronous_commit = {configured}")
    try:
        with opened(url) as store, store.begin() as transaction:
            assert transaction._db.execute("SHOW synchronous_commit").fetchone() == (wanted,)
    finally:
        server.execute(f"ALTER DATABASE {name(url)} RESET synchronous_commit")


def test_a_write_that_takes_too_long_to_work_out_is_refused_and_no_doubt_about_the_data(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief = postgres._WRITE.replace("'300s'", "'50ms'")
    assert brief != postgres._WRITE
    with opened(url) as store:
        monkeypatch.setattr(postgres, "_WRITE", brief)
        with store.begin() as transaction:
            live.until(lambda: not asked_for(url, "idle in transaction"))
            with pytest.raises(errors.Unavailable, match="split it") as refused:
                transaction.commit(entry(1, create("namespaces", "a")))
        assert not isinstance(refused.value, errors.Doubt)
        monkeypatch.undo()
        commit(store, entry(1, create("namespaces", "a")))
        assert store.head().revision == 1


def asked_for(url: str, state: str) -> list[Any]:
    """Connections to the database that are in a state."""
    with asking(url) as db:
        about = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = %s"
        return db.execute(about, (state,)).fetchall()


def test_two_writers_leave_no_gap(url: str) -> None:
    with opened(url) as one, opened(url) as other:

        def write(store: PostgresStore, which: str) -> None:
            for number in range(10):
                with store.begin() as transaction:
                    revision = (transaction.snapshot().revision) + 1
                    transaction.commit(msgspec.structs.replace(entry(1, create("n", f"{which}{number}")), revision=revision))

        threads = [threading.Thread(target=write, args=pair) for pair in ((one, "a"), (other, "b"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [each.revision for each in one.entries(0)] == list(range(1, 21))
        assert other.verified().fault is None
        live.until(lambda: one.version() == other.version())


@pytest.fixture
def lonely(server: postgres_server.Server) -> Iterator[None]:
    """Commits wait for a standby that never comes."""
    try:
        server.execute("ALTER SYSTEM SET synchronous_standby_names = 'absent'")
        server.execute("SELECT pg_reload_conf()")
        live.until(lambda: server.execute("SHOW synchronous_standby_names") == [("absent",)])
        yield
    finally:
        server.execute("ALTER SYSTEM RESET synchronous_standby_names")
        server.execute("SELECT pg_reload_conf()")
        live.until(lambda: server.execute("SHOW synchronous_standby_names") == [("",)])


def cancelled(server: postgres_server.Server) -> bool:
    """As an administrator who does not want to wait."""
    return bool(server.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))


@pytest.mark.parametrize("gives_up", ["client", "server"])
def test_a_commit_that_waits_for_an_absent_standby_is_unknown(
    url: str, server: postgres_server.Server, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, gives_up: str
) -> None:
    with opened(url) as store:
        commit(store, entry(1, create("n", "a")))
        request.getfixturevalue("lonely")
        if gives_up == "client":
            monkeypatch.setattr(postgres_connections, "PATIENCE_SECONDS", 0.3)
        else:
            threading.Thread(target=live.until, args=(lambda: cancelled(server),)).start()
        with pytest.raises(errors.Unreachable, match="whether the change is kept is unknown"):
            commit(store, entry(2, create("n", "b")))
    live.until(lambda: gives_up == "server" or cancelled(server))
    with opened(url, read_only=True) as reader:
        live.until(lambda: reader.head().revision == 2)
        assert [each.revision for each in reader.entries(0)] == [1, 2]


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM changes WHERE revision = 2; DELETE FROM entries WHERE revision = 2",
        "DELETE FROM documents WHERE id = 'b'",
        "UPDATE documents SET body = '{' WHERE id = 'a'",
        "UPDATE documents SET revision = 1 WHERE id = 'b'",
        "DELETE FROM identity",
    ],
)
def test_damage_is_doubt(url: str, damage: str) -> None:
    with opened(url) as store:
        commit(store, entry(1, create("n", "a")), entry(2, create("n", "b")), entry(3, create("n", "c")))
        with asking(url) as db:
            db.execute(damage.encode())
        with pytest.raises(errors.Doubt, match="restore a backup"):
            store.snapshot()
        assert store.is_reachable()


def test_a_log_that_forked_does_not_go_on(url: str) -> None:
    with opened(url) as store:
        commit(store, entry(1, create("n", "a")), entry(2, create("n", "b")))
        known = store.head()
        with asking(url) as db:  # as a backup of revision 1, restored and written to
            db.execute("DELETE FROM changes WHERE revision = 2")
            db.execute("DELETE FROM entries WHERE revision = 2")
            db.execute("DELETE FROM documents WHERE id = 'b'")
            db.execute("UPDATE log_head SET revision = 1, hash = (SELECT hash FROM entries)")
        commit(store, entry(2, create("n", "other")), entry(3, create("n", "c")))
        assert not store.continues(known)
        assert store.follow(known) is None
        assert store.verified().fault is None


# When it does not answer


def test_connections_that_were_cut_are_made_again(url: str, server: postgres_server.Server) -> None:
    with opened(url) as store:
        commit(store, entry(1, create("n", "a")))
        told: list[bool] = []
        store.on_change(lambda: told.append(store.is_reachable()))
        server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name(url)}'")
        live.until(lambda: told[-2:] == [False, True])
        commit(store, entry(2, create("n", "b")))
        assert store.head().revision == 2


def test_while_the_database_is_away_reading_is_unreachable_and_the_version_stays(
    url: str, server: postgres_server.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with loopback_proxy.proxied(server.port) as proxy:
        theirs = url.replace(f":{server.port}/", f":{proxy.port}/")
        with opened(theirs) as store:
            commit(store, entry(1, create("n", "a")))
            version, seen = store.version(), store.seen()
            monkeypatch.setattr(postgres_watch, "PATIENCE_SECONDS", 0.3)
            monkeypatch.setattr(postgres_connections, "PATIENCE_SECONDS", 0.3)
            store._watch._connection.patience = 0.3  # type: ignore[union-attr]
            proxy.stall()
            with pytest.raises(errors.Unreachable):
                store.begin()
            live.until(lambda: not store.is_reachable())
            for ask in (store.head, store.snapshot, store.begin):
                with pytest.raises(errors.Unreachable, match="cannot be reached"):
                    ask()
            assert store.version() == version
            assert store.seen() >= seen
            with pytest.raises(errors.Unreachable):
                PostgresStore(postgres_connections.target(theirs), read_only=True)
            proxy.cut()
            proxy.flow()
            live.until(store.is_reachable)
            commit(store, entry(2, create("n", "b")))
            assert store.head().revision == 2


def test_a_connection_that_stalls_in_a_transaction_is_given_up(url: str, server: postgres_server.Server) -> None:
    with loopback_proxy.proxied(server.port) as proxy:
        with opened(url.replace(f":{server.port}/", f":{proxy.port}/")) as store:
            transaction = store.begin()
            transaction._connection.patience = 0.3  # of this connection only: to connect again may take longer
            proxy.stall()
            with pytest.raises(errors.Unreachable):
                transaction.commit(entry(1, create("n", "a")))
            proxy.cut()
            proxy.flow()
        with opened(url) as store:
            assert store.head().revision == 0
            commit(store, entry(1, create("n", "a")))  # nobody holds the lock any more


def test_without_notify_a_look_finds_what_others_wrote_and_it_is_said_once(
    url: str, server: postgres_server.Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_watch, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(postgres_watch, "TOLD_SECONDS", 0.05)
    with loopback_proxy.proxied(server.port, keeps_notices=True) as proxy, caplog.at_level(logging.WARNING):
        pooled = url.replace(f":{server.port}/", f":{proxy.port}/") + "?sslmode=disable&gssencmode=disable"
        with opened(url) as store, opened(pooled, read_only=True) as reader:
            for number in (1, 2):
                commit(store, entry(number, create("n", f"a{number}")))
                live.until(lambda: reader.version() == store.version())
            live.until(lambda: caplog.text != "")
    assert caplog.text.count("passes on no NOTIFY") == 1


def test_a_notice_is_enough(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_watch, "LOOK_SECONDS", 3600.0)
    with opened(url) as store, opened(url, read_only=True) as reader:
        for number in range(1, 4):
            commit(store, entry(number, create("n", f"a{number}")))
            live.until(lambda: reader.version() == store.version())
        assert reader.head().revision == 3


# Connections that are gone


@pytest.fixture
def uncollected() -> Iterator[None]:
    """The garbage collector does not run."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
def test_a_closed_connection_leaves_no_reference_cycle(bare: str) -> None:
    connection = postgres_connections.target(bare).connect()
    left = weakref.WeakSet([connection])
    connection.close()
    del connection
    assert_freed(left)


@pytest.mark.usefixtures("uncollected")
def test_a_failed_attempt_to_connect_leaves_no_reference_cycle() -> None:
    absent = postgres_connections.target(f"postgresql://x@127.0.0.1:{live.free_port()}/x")
    left = weakref.WeakSet[BaseException]()
    try:
        absent.connect()
    except errors.Unreachable as exc:
        left.update(each for each in (exc, exc.__cause__) if each is not None)
    else:
        pytest.fail("something listens there")
    assert_freed(left)


def assert_freed(left: weakref.WeakSet[Any]) -> None:
    with contextlib.suppress(AssertionError):
        live.until(lambda: not left, 10)  # the thread that connects may still be ending
    assert not list(left)


# Passwords


@pytest.fixture
def protected(url: str, server: postgres_server.Server) -> Iterator[str]:
    """The same store, for somebody with a password."""
    server.execute(f"CREATE ROLE {postgres_server.PROTECTED} LOGIN SUPERUSER PASSWORD 'sesame'", name(url))
    yield url.replace("postgres@", f"{postgres_server.PROTECTED}@")
    server.execute(f"DROP ROLE {postgres_server.PROTECTED}", name(url))


def test_a_password_is_read_again_for_every_connection(
    protected: str, server: postgres_server.Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "password"
    file.write_text("sesame\n")
    store = opening.opener(opening.location(protected, file), writing=True)()
    commit(store, entry(1, create("n", "a")))
    server.execute(f"ALTER ROLE {postgres_server.PROTECTED} PASSWORD 'open-up'")
    server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name(protected)}'")
    live.until(lambda: not store.is_reachable())
    file.write_text("open-up\n")
    live.until(store.is_reachable)
    commit(store, entry(2, create("n", "b")))
    store.close()
    assert not {"sesame", "open-up"} & set(caplog.text.replace('"', " ").split())


@pytest.mark.parametrize(("writing", "wanted"), [(True, errors.StartupError), (False, errors.Unreachable)])
def test_a_refused_login_ends_a_writer_that_starts(protected: str, writing: bool, wanted: type[errors.Error]) -> None:
    wrong = protected.replace("@", ":hush-hush@")
    with pytest.raises(wanted, match=r"refuses the login: .*password authentication failed") as refusal:
        opening.opener(opening.location(wrong), writing=writing)()
    assert "hush-hush" not in f"{refusal.value!r} {refusal.value} {opening.location(wrong)!r}"


@pytest.mark.parametrize("text", ["postgresql://u:hush-hush@h:port/x", "postgres://u:hush-hush@h/x?sslmod=require"])
def test_a_wrong_url_is_told_without_its_password(text: str) -> None:
    with pytest.raises(errors.StartupError, match="DATABASE_URL: PostgreSQL") as refusal:
        opening.location(text)
    assert "hush-hush" not in str(refusal.value)


def test_an_absent_database_is_waited_for_by_a_writer_that_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "STARTING_SECONDS", 0.1)
    monkeypatch.setattr(opening, "PAUSE_SECONDS", 0.03)
    where = opening.location(f"postgresql://nobody@127.0.0.1:{live.free_port()}/none")
    for writing in (True, False):
        with pytest.raises(errors.Unreachable, match="cannot be reached"):
            opening.opener(where, writing=writing)()


def test_a_target_names_neither_user_nor_password() -> None:
    where = opening.location("postgresql://jane:hush@one,two:5433/fleet?sslmode=disable")
    assert where.target == "postgresql://one:5432,two:5433/fleet"
    assert opening.location("sqlite:///srv/fleet.db").target == "sqlite:///srv/fleet.db"


def test_an_empty_head_is_not_one_of_another_database(url: str, bare: str) -> None:
    with opened(url) as store, opened(bare) as other:
        assert not other.continues(store.head())
        assert other.follow(Head(store.epoch(), 0, "")) is None
        commit(other, entry(1, create("n", "a")), entry(2, update("n", {"id": "a"}, {"id": "a", "v": 1})))
        assert store.head().revision == 0
