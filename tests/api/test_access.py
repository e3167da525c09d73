"""Who may do what: a written-down matrix of principals, methods and paths, and tokens that are bound to a cluster."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

import live
from api.fleets import DEMO, DEMO_DNS, SEED, VIEWS, assert_problem, make, view
from api.test_authentication import write_tokens
from flux_resourceset.follower import Follower
from flux_resourceset.http import app, metrics
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from flux_resourceset.store.memory import MemoryStore

BOUND, ELSEWHERE, TWICE, FREED = "bound-" + "b" * 32, "elsewhere-" + "e" * 32, "twice-" + "t" * 32, "freed-" + "f" * 32
OTHER_DNS, NO_CLUSTER = "other.example.com", "never.example.com"
TOKENS = f"""\
demo   read {BOUND} {DEMO_DNS}  # its own views
lost   read {ELSEWHERE} {NO_CLUSTER}
demo   read {TWICE} {DEMO_DNS}
other  read {TWICE} {OTHER_DNS}
freed  read {FREED} {DEMO_DNS}
freed  read {FREED}
"""
ONES = {
    "platform-components": "podinfo",
    "namespaces": "podinfo",
    "rolebindings": "platform-admins",
}  # inputs of the demo cluster
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "MKCOL")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    directory = tmp_path_factory.mktemp("access")
    write_tokens(directory / "tokens", TOKENS)
    with live.serving(directory, TOKENS_FILE=str(directory / "tokens"), SEED_FILE=str(SEED)) as running:
        with running.client() as api:
            make(api, "clusters", "other", cluster_dns=OTHER_DNS)
        yield running


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    directory = tmp_path_factory.mktemp("access-read-only")
    write_tokens(directory / "tokens", TOKENS)
    settings = {"TOKENS_FILE": str(directory / "tokens"), "SEED_FILE": str(SEED), "STORE_BACKEND": "memory"}
    with live.serving(directory, API_MODE="read-only", OPENAPI_PUBLIC="false", **settings) as running:
        yield running


def bearer(token: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


# The matrix

PRINCIPALS = (None, live.READ, live.WRITE, BOUND, ELSEWHERE)
ANYBODY, READERS = (200,) * 5, (401, 200, 200, 403, 403)
MATRIX = {  # what a stranger gets, a reader, a writer, a token of the demo cluster, and one of a DNS name that is no cluster
    "GET /health": ANYBODY,
    "HEAD /ready": ANYBODY,
    "GET /openapi.yaml": ANYBODY,
    "GET /openapi.json": ANYBODY,
    "DELETE /openapi.json": (405,) * 5,
    "GET /usage/namespaces": READERS,
    "HEAD /usage/namespaces/podinfo": READERS,
    "GET /usage/clusters": (401, 404, 404, 403, 403),
    "GET /usage": (401, 404, 404, 403, 403),
    "GET /tombstones": READERS,
    "POST /health": (405,) * 5,
    "DELETE /openapi.yaml": (405,) * 5,
    "GET /health/": (401, 404, 404, 403, 403),
    "GET /metrics": READERS,
    "GET /whoami": (401, 200, 200, 200, 200),
    "GET /whoami?x=1": (401, 400, 400, 400, 400),
    "POST /whoami": (401, 403, 405, 403, 403),
    "GET /metrics?x=1": (401, 400, 400, 403, 403),
    "GET /api/v2/flux/clusters": READERS,
    "HEAD /api/v2/flux/clusters?environment=prod": READERS,
    "GET /api/v2/flux/clusters/": (401, 404, 404, 403, 403),
    **{f"{method} {view(DEMO_DNS, name)}": (401, 200, 200, 200, 403) for method in ("GET", "HEAD") for name in VIEWS},
    f"GET {view(DEMO_DNS, 'namespaces')}?x=1": (401, 200, 200, 200, 403),
    f"GET {view(OTHER_DNS, 'namespaces')}": READERS,
    f"HEAD {view(OTHER_DNS, 'rolebindings')}": READERS,
    f"GET {view(NO_CLUSTER, 'namespaces')}": (401, 404, 404, 403, 404),
    f"GET {view('nobody.example.com', 'namespaces')}": (401, 404, 404, 403, 403),
    f"GET {view(DEMO_DNS, 'nonsense')}": (401, 404, 404, 404, 403),
    f"GET {view(OTHER_DNS, 'nonsense')}": (401, 404, 404, 403, 403),
    f"GET {view(NO_CLUSTER, 'nonsense')}": (401, 404, 404, 403, 404),
    f"GET {view(DEMO_DNS.upper(), 'namespaces')}": (401, 404, 404, 403, 403),
    f"GET {view(DEMO_DNS + '.', 'namespaces')}": (401, 404, 404, 403, 403),
    f"GET {view('x' + DEMO_DNS, 'namespaces')}": (401, 404, 404, 403, 403),
    f"GET {view(DEMO_DNS, '')}": (401, 404, 404, 403, 403),
    f"GET {view(DEMO_DNS, 'namespaces')}/": (401, 404, 404, 403, 403),
    f"GET {view(DEMO, 'namespaces')}": (401, 404, 404, 403, 403),
    **{
        f"{method} {view(DEMO_DNS, name)}/{ONES[name]}": (401, 200, 200, 200, 403) for method in ("GET", "HEAD") for name in VIEWS
    },
    f"GET {view(DEMO_DNS, 'namespaces')}/podinfo?x=1": (401, 200, 200, 200, 403),
    f"GET {view(DEMO_DNS, 'namespaces')}/nonsense": (401, 404, 404, 404, 403),
    f"HEAD {view(DEMO_DNS, 'namespaces')}/nonsense": (401, 404, 404, 404, 403),
    f"GET {view(DEMO_DNS, 'nonsense')}/podinfo": (401, 404, 404, 404, 403),
    f"GET {view(DEMO_DNS, 'namespaces')}/podinfo/": (401, 404, 404, 403, 403),
    f"GET {view(OTHER_DNS, 'namespaces')}/podinfo": (401, 404, 404, 403, 403),
    f"GET {view(OTHER_DNS, 'nonsense')}/podinfo": (401, 404, 404, 403, 403),
    f"GET {view(NO_CLUSTER, 'namespaces')}/podinfo": (401, 404, 404, 403, 404),
    f"GET {view(NO_CLUSTER, 'nonsense')}/podinfo": (401, 404, 404, 403, 404),
    f"GET {view(DEMO, 'namespaces')}/podinfo": (401, 404, 404, 403, 403),
    f"POST {view(DEMO_DNS, 'namespaces')}/podinfo": (401, 403, 405, 403, 403),
    f"OPTIONS {view(DEMO_DNS, 'namespaces')}/podinfo": (401, 405, 405, 403, 403),
    f"POST {view(DEMO_DNS, 'namespaces')}": (401, 403, 405, 403, 403),
    f"OPTIONS {view(DEMO_DNS, 'namespaces')}": (401, 405, 405, 403, 403),
    f"DELETE {view(DEMO_DNS, 'nonsense')}": (401, 403, 404, 403, 403),
    f"MKCOL {view(DEMO_DNS, 'namespaces')}": (401, 403, 405, 403, 403),
    "GET /clusters": READERS,
    f"GET /clusters/{DEMO}": READERS,
    "GET /clusters/nobody": (401, 404, 404, 403, 403),
    "GET /changes": READERS,
    "GET /kinds": READERS,
    "GET /export": READERS,
    "OPTIONS /clusters": (401, 405, 405, 403, 403),
    "POST /clusters": (401, 403, 415, 403, 403),
    "MKCOL /clusters": (401, 403, 405, 403, 403),
    "DELETE /clusters/nobody": (401, 403, 404, 403, 403),
    "POST /batch": (401, 403, 415, 403, 403),
    "POST /batch?dry_run=true": (401, 415, 415, 403, 403),
    "POST /import?dry_run=true": (401, 415, 415, 403, 403),
    "DELETE /clusters/nobody?dry_run=true": (401, 404, 404, 403, 403),
    "GET /batch": (401, 405, 405, 403, 403),
    "GET /nothing": (401, 404, 404, 403, 403),
    "POST /nothing": (401, 403, 404, 403, 403),
    "POST /nothing?dry_run=true": (401, 403, 404, 403, 403),
    "GET /": (401, 404, 404, 403, 403),
}


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("asked", MATRIX)
def test_every_principal_gets_what_the_matrix_says(server: live.Server, asked: str) -> None:
    method, path = asked.split(" ")
    with server.client(None) as client:
        answers = [client.request(method, path, headers=bearer(token)) for token in PRINCIPALS]
    assert tuple(answer.status_code for answer in answers) == MATRIX[asked]
    if method != "HEAD":
        for answer in answers:
            if answer.status_code == 403:
                assert_problem(answer, 403, "forbidden")


@pytest.mark.long
def test_every_route_and_method_keeps_the_rules(server: live.Server) -> None:
    """Also those that nobody wrote down: all of the table of routes, for those who may not write."""
    kinds = kind_files.load()
    ledger = Ledger(Follower(kinds, MemoryStore))
    routes = app.routes(kinds, ledger, metrics.Metrics(ledger.follower), lambda: b"", writable=True)
    ones = {f"{view(DEMO_DNS, name)}/{{id}}": f"{view(DEMO_DNS, name)}/{one}" for name, one in ONES.items()}
    paths = [route.path.replace("{cluster_dns}", DEMO_DNS) for route in routes]
    filled = [ones.get(path, path).replace("{", "").replace("}", "") for path in paths]
    wrong = []
    with server.client(None) as client:
        for path in filled:
            is_view = path.startswith("/api/v2/flux/clusters/")
            for method in METHODS:
                stranger, reader, bound = (
                    client.request(method, path, headers=bearer(token)).status_code for token in (None, live.READ, BOUND)
                )
                if path in ("/health", "/ready", "/openapi.yaml", "/openapi.json"):
                    good = stranger == reader == bound == (200 if method in ("GET", "HEAD") else 405)
                else:
                    reads = method in ("GET", "HEAD")
                    is_own = is_view or path == "/whoami"
                    good = stranger == 401 and (bound == 200 if is_own and reads else bound == 403)
                    planned = (method, path) == ("POST", "/plan")  # which writes nothing
                    good &= (reader == 403) == (method not in ("GET", "HEAD", "OPTIONS") and not planned) and reader != 401
                if not good:
                    wrong.append((method, path, stranger, reader, bound))
    assert len(filled) > 20
    assert wrong == []


def test_a_token_learns_who_it_is_also_where_nothing_can_be_written(server: live.Server, read_only: live.Server) -> None:
    expected = {
        live.READ: {"name": "read", "role": "read"},
        live.WRITE: {"name": "write", "role": "write"},
        BOUND: {"name": "demo", "role": "read", "clusters": [DEMO_DNS]},
        TWICE: {"name": "demo", "role": "read", "clusters": sorted([DEMO_DNS, OTHER_DNS])},
        FREED: {"name": "freed", "role": "read"},
    }
    for token, identity in expected.items():
        with server.client(token) as client:
            assert client.get("/whoami").json() == identity
    with read_only.client(BOUND) as client:
        assert client.get("/whoami").json() == expected[BOUND]
    with read_only.client(live.WRITE) as client:
        assert_problem(client.get("/whoami"), 401, "unauthorized")


# Tokens that are bound to a cluster


@pytest.mark.usefixtures("both_ways")
def test_a_bound_token_learns_nothing_of_other_clusters(server: live.Server) -> None:
    with server.client(BOUND) as client:
        bodies = set()
        others = (view(OTHER_DNS, "namespaces"), view("nobody.example.com", "namespaces"))
        for path in (*others, *(f"{other}/podinfo" for other in others), "/clusters", "/nothing"):
            problem = assert_problem(client.get(path), 403, "forbidden")
            bodies.add(problem["detail"])
    assert bodies == {f"token 'demo' reads the views of {DEMO_DNS} and nothing else"}


@pytest.mark.usefixtures("both_ways")
def test_its_own_views_are_those_of_everybody_byte_for_byte(server: live.Server) -> None:
    basic = {"Authorization": "Basic " + base64.b64encode(f"flux:{BOUND}".encode()).decode()}
    with server.client(None) as client:
        for path in [path for name in VIEWS for path in (view(DEMO_DNS, name), f"{view(DEMO_DNS, name)}/{ONES[name]}")]:
            for encoding in ("gzip", "identity"):
                sent = {"Accept-Encoding": encoding}
                answers = [client.get(path, headers={**sent, **who}) for who in (bearer(live.READ), bearer(BOUND), basic)]
                assert {answer.status_code for answer in answers} == {200}
                assert len({answer.content for answer in answers}) == 1
                assert len({answer.headers.get("content-encoding") for answer in answers}) == 1


@pytest.mark.usefixtures("both_ways")
def test_a_secret_on_several_lines_has_the_rights_of_all_of_them(server: live.Server) -> None:
    with server.client(TWICE) as client:
        assert [client.get(view(dns, "namespaces")).status_code for dns in (DEMO_DNS, OTHER_DNS, NO_CLUSTER)] == [200, 200, 403]
        assert_problem(client.get("/clusters"), 403)
    with server.client(FREED) as client:
        assert [client.get(path).status_code for path in (view(OTHER_DNS, "namespaces"), "/clusters")] == [200, 200]


@pytest.mark.usefixtures("both_ways")
def test_a_decommissioned_cluster_still_reads_its_empty_lists(tmp_path: Path) -> None:
    write_tokens(tmp_path / "tokens", TOKENS)
    with live.serving(tmp_path, TOKENS_FILE=str(tmp_path / "tokens"), SEED_FILE=str(SEED)) as own:
        with own.client() as api:
            assert api.delete(f"/clusters/{DEMO}").status_code == 200
        with own.client(BOUND) as client:
            assert client.get(view(DEMO_DNS, "namespaces")).json() == {"inputs": []}


@pytest.mark.usefixtures("both_ways")
def test_a_read_only_server_binds_tokens_too(read_only: live.Server) -> None:
    with read_only.client(BOUND) as client:
        assert [client.request(method, view(DEMO_DNS, "namespaces")).status_code for method in METHODS] == [200, 200, *[403] * 6]
        for path in (
            view(OTHER_DNS, "namespaces"),
            "/api/v2/flux/clusters",
            "/metrics",
            "/clusters",
            "/nothing",
            "/openapi.yaml",
            "/openapi.json",
            "/usage/namespaces",
            "/tombstones",
        ):
            for method in METHODS:
                assert client.request(method, path).status_code == 403
        assert [client.get(path).status_code for path in ("/health", "/ready", view(DEMO_DNS, "nonsense"))] == [200, 200, 404]
    with read_only.client(live.READ) as reader:
        assert reader.get("/openapi.yaml").status_code == 200
        assert_problem(reader.post("/clusters"), 404)  # nothing can be written here, so nobody needs the right


def test_a_token_is_bound_anew_and_freed_without_a_restart_also_on_an_open_connection(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    own, other = view(DEMO_DNS, "namespaces"), view(OTHER_DNS, "namespaces")
    write_tokens(tokens, f"demo read {BOUND} {DEMO_DNS}\n")
    with live.serving(tmp_path, TOKENS_FILE=str(tokens), SEED_FILE=str(SEED)) as server:
        with server.client() as api:
            make(api, "clusters", "other", cluster_dns=OTHER_DNS)
        with live.client(server.url, BOUND) as client:

            def statuses() -> list[int]:
                return [client.get(path).status_code for path in (own, other, own, other)]

            assert statuses() == [200, 403] * 2
            write_tokens(tokens, f"demo read {BOUND} {OTHER_DNS}\n")
            assert statuses() == [403, 200] * 2
            for broken in (f"demo write {BOUND} {DEMO_DNS}\n", f"demo read {BOUND} Demo\n", f"demo read {BOUND} a b\n"):
                write_tokens(tokens, broken)
                assert statuses() == [403, 200] * 2
            write_tokens(tokens, f"demo read {BOUND}\n")
            assert statuses() == [200] * 4
            write_tokens(tokens, "# nobody\n")
            assert statuses() == [401] * 4


# Dry runs

BATCH = {"operations": [{"op": "create", "kind": "namespaces", "id": "tried", "document": {}}]}


@pytest.mark.parametrize(
    "query",
    [
        "dry_run=true",
        "dry_run=true&",
        "&dry_run=true",
        "&&dry_run=true&&",
        "dry_run=%74rue",
        "%64ry_run=tru%65",
        "dry%5Frun=true",
    ],
)
def test_a_dry_run_is_one_however_its_query_is_spelt(server: live.Server, query: str) -> None:
    with server.client(None) as client:
        for token in (live.READ, live.WRITE):
            answer = client.post(f"/batch?{query}", json=BATCH, headers=bearer(token))
            assert answer.request.url.raw_path.decode() == f"/batch?{query}"
            assert (answer.status_code, answer.json()["dry_run"]) == (200, True)
        assert_problem(client.post(f"/batch?{query}", json=BATCH, headers=bearer(BOUND)), 403)
        assert_problem(client.get("/namespaces/tried", headers=bearer(live.READ)), 404)


@pytest.mark.parametrize(
    "query",
    [
        "dry_run=false", "dry_run=", "dry_run", "dry_run=True", "dry_run=1", "dry_run=true%20", "dry_run=+true",
        "dry_run=true%00", "dry_run=true;x", "dry_run=true&dry_run=true", "dry_run=true&dry_run=false",
        "DRY_RUN=true", "dry_run%00=true", "dry_run=%2574rue", "x=dry_run=true", "dry_run[]=true",
    ],
)  # fmt: skip
def test_what_may_be_no_dry_run_needs_the_right_to_write(server: live.Server, query: str) -> None:
    """403 comes before 400: who may only read learns nothing but that."""
    with server.client(None) as client:
        assert_problem(client.post(f"/batch?{query}", json=BATCH, headers=bearer(live.READ)), 403, "forbidden")
        assert_problem(client.get("/namespaces/tried", headers=bearer(live.READ)), 404)
        if query != "dry_run=false":
            assert_problem(client.post(f"/batch?{query}", json=BATCH, headers=bearer(live.WRITE)), 400, "bad-query")


def test_a_dry_run_with_another_parameter_is_refused_and_writes_nothing(server: live.Server) -> None:
    with server.client(live.READ) as client:
        assert_problem(client.post("/batch?dry_run=true&x=1", json=BATCH), 400, "bad-query")
        assert_problem(client.get("/namespaces/tried"), 404)


def test_the_answer_of_a_public_path_does_not_depend_on_the_token(server: live.Server) -> None:
    with server.client(None) as client:
        answers = [client.get("/openapi.yaml", headers=bearer(token)) for token in (*PRINCIPALS, "wrong")]
    assert len({(answer.status_code, answer.content) for answer in answers}) == 1
