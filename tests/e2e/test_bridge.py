"""The inputs of a tenant move from Git to the API and back, under the real Flux, and nothing in the cluster changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import live

from . import secret_operator, two_repositories
from .kube import Object, condition, ready
from .two_repositories import (
    KUSTOMIZATION,
    PROVIDER,
    RESOURCE_SET,
    RESOURCESET,
    SERVICE,
    TENANT,
    Cluster,
    Estate,
    Repositories,
)

KIND, TOKEN = "standard_services", "fleet-api-token"
ENVIRONMENTS = ("dev", "staging", "prod")
OF_TOKEN = {f"ExternalSecret/{TOKEN}", f"Secret/{TOKEN}"}  # what is there only while the API is asked
INPUTS = f"{TENANT}-inputs"
DNS = "dev-use1-01.acme.example"
INPUT, SECRETS = (f"dev/dev-use1-01/tenants/{TENANT}/{name}.yaml" for name in ("input", "secrets"))


class Everything(NamedTuple):
    """What must stay as it is."""

    identities: dict[str, tuple[str, str]]  # UID and generation of all objects but for the provider and the token
    provider: str  # the UID: its generation is what changes
    revisions: dict[str, int]  # of Helm


@dataclass
class Bridge:
    """The fleet, and an API that can go away and come back."""

    estate: Estate
    directory: Path
    environment: dict[str, str]
    server: live.Server
    original: dict[str, str]  # the files that a switch rewrites, as they were in the beginning

    @property
    def dev(self) -> Cluster:
        return self.estate.dev

    @property
    def repositories(self) -> Repositories:
        return self.estate.repositories

    def restart(self) -> None:
        self.server = live.Server(self.directory, self.environment)
        self.server.wait("/ready")

    def call(self, method: str, path: str, document: Any = None) -> Any:
        with self.server.client() as client:
            answer = client.request(method, path, json=document) if document is not None else client.request(method, path)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    # The tenant

    def switch(self, to: str) -> None:
        """Let Git or the API hold the inputs, and wait until Flux has them from there."""
        if not self.repositories.ok("switch", TENANT, "--to", to, "--environment", "dev", "--commit"):
            return
        self.dev.follow(self.repositories.push())
        wanted = {"api": "ExternalService", "git": "Static"}[to]
        self.dev.kube.wait_for_object(
            PROVIDER, INPUTS, self.dev.namespace, where=lambda found: found["spec"]["type"] == wanted and ready(found)
        )
        self.dev.looked_at_everything()

    def hold_in_api(self) -> None:
        self.repositories.ok("import", TENANT)
        assert self.repositories.ok("compare", TENANT) == []
        self.switch("api")

    def provider(self) -> Object:
        return self.dev.kube.get(PROVIDER, INPUTS, self.dev.namespace) or {}

    def everything(self) -> Everything:
        found = self.dev.identities()
        provider, _ = found.pop(f"ResourceSetInputProvider/{INPUTS}")
        identities = {name: each for name, each in found.items() if name not in OF_TOKEN}
        return Everything(identities, provider, self.dev.revisions())


@pytest.fixture(scope="module")
def _bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    directory: Path = tmp_path_factory.mktemp("bridge")
    kinds = directory / "kinds"
    kinds.mkdir()
    environment = live.environment(directory, RESOURCES_DIR=str(kinds), ENVIRONMENTS=",".join(ENVIRONMENTS))

    def prepare(repositories: Repositories) -> None:
        repositories.ask(f"http://{environment['LISTEN_ADDR']}")
        repositories.commit("Where the API is")
        made = repositories("kind", "standard-service")
        assert made.code == 0, made
        (kinds / f"{KIND}.yaml").write_text(made.out)

    with (
        two_repositories.running(directory, "dev", prepare=prepare) as estate,
        secret_operator.standing_in(estate.dev.kube, estate.repositories.vault(estate.dev)) as vault,
    ):
        vault.write(f"secret/data/{TENANT}/dev", {"db_password": "first", TOKEN: live.READ})
        vault.write("secret/data/orders/dev", {"db_password": "other"})
        original = {path: estate.repositories.read(path) for path in (INPUT, SECRETS)}
        bridge = Bridge(estate, directory, environment, live.Server(directory, environment), original)
        try:
            bridge.server.wait("/ready")
            for name in ENVIRONMENTS:
                id = f"{name}-use1-01"
                cluster = {"id": id, "cluster_name": id, "cluster_dns": f"{id}.acme.example", "environment": name}
                bridge.call("POST", "/clusters", cluster)
            estate.dev.kube.wait_for_object("secret", "payment-app-secrets", estate.dev.namespace)
            yield bridge
        finally:
            bridge.server.end()


@pytest.fixture
def bridge(_bridge: Bridge) -> Bridge:
    _bridge.estate.check_alive()
    return _bridge


def test_inputs_move_to_the_api_and_nothing_in_the_cluster_changes(bridge: Bridge) -> None:
    bridge.switch("git")
    before, text = bridge.everything(), bridge.repositories.read(SECRETS)
    bridge.hold_in_api()
    assert bridge.everything() == before
    provider = bridge.provider()
    assert provider["spec"]["url"] == f"{bridge.server.url}/api/v2/flux/clusters/{DNS}/standard-services/{TENANT}"
    assert [each["id"] for each in provider["status"]["exportedInputs"]] == [TENANT]
    assert bridge.repositories.read(SECRETS).startswith(text)
    assert secret_operator.decoded(bridge.dev.kube.get("secret", TOKEN, bridge.dev.namespace) or {}) == {"token": live.READ}
    shown = bridge.repositories("diff", "--from", "HEAD~1", "--to", "HEAD")
    assert (shown.code, shown.data["tenants"]) == (0, [])


def test_what_is_set_arrives_by_the_api_and_leaves_git_alone(bridge: Bridge) -> None:
    bridge.hold_in_api()
    before, commit = bridge.everything(), bridge.repositories.git("rev-parse", "HEAD")
    (row,) = bridge.repositories.ok("set", TENANT, "--environment", "dev", "--set-json", "replicas=7", "--commit")
    assert (row["before"], row["after"]) == (2, 7)
    bridge.dev.looked_at_inputs()
    assert bridge.dev.released(SERVICE, "replicas", 7)["environment"] == "dev"
    assert bridge.dev.revisions() == {**before.revisions, SERVICE: before.revisions[SERVICE] + 1}
    assert bridge.repositories.git("rev-parse", "HEAD") == commit
    assert bridge.repositories.git("status", "--porcelain") == ""
    bridge.repositories.ok("set", TENANT, "--environment", "dev", "--set-json", "replicas=2")
    bridge.dev.looked_at_inputs()
    bridge.dev.released(SERVICE, "replicas", 2)


def test_while_the_api_is_down_nothing_is_lost(bridge: Bridge) -> None:
    bridge.hold_in_api()
    before = bridge.everything()
    bridge.server.kill()
    bridge.dev.kube.reconcile(KUSTOMIZATION, "tenants")  # it applies all of Git again
    try:
        assert_refused(bridge, "connection refused")
        assert bridge.everything() == before
        bridge.repositories.new_tenant("orders", bridge.dev.name)
        bridge.dev.follow(bridge.repositories.deliver("Orders"))  # no other tenant waits for the API
    finally:
        bridge.restart()
    assert ready(bridge.dev.looked_at_inputs())
    bridge.dev.looked_at_everything()
    assert bridge.everything() == before


def test_a_tenant_that_is_no_longer_assigned_loses_nothing(bridge: Bridge) -> None:
    bridge.hold_in_api()
    before, place = bridge.everything(), f"/clusters/{bridge.dev.name}/{KIND}/{TENANT}"
    held = bridge.call("GET", f"/clusters/{bridge.dev.name}")[KIND]
    (reference,) = ({name: value for name, value in each.items() if name != "id"} for each in held)
    bridge.call("DELETE", place)
    assert_refused(bridge, "404")
    assert bridge.everything() == before
    bridge.call("PUT", place, reference)
    assert ready(bridge.dev.looked_at_inputs())
    bridge.dev.looked_at_everything()
    assert bridge.everything() == before


def assert_refused(bridge: Bridge, words: str) -> None:
    """The provider says so, keeps its inputs, and the ResourceSet its objects."""

    def says_so(found: Object) -> bool:
        said = condition(found, "Ready")
        return said.get("status") == "False" and words in said["message"]

    bridge.dev.kube.reconcile(PROVIDER, INPUTS, bridge.dev.namespace)
    provider = bridge.dev.kube.wait_for_object(PROVIDER, INPUTS, bridge.dev.namespace, where=says_so)
    assert [each["id"] for each in provider["status"]["exportedInputs"]] == [TENANT]
    bridge.dev.looked_at_releases()
    held = bridge.dev.kube.get(RESOURCE_SET, RESOURCESET, bridge.dev.namespace) or {}
    assert len(held["status"]["inventory"]["entries"]) == 3  # the charts, the database, the API
    assert ready(held)


def test_inputs_move_back_to_git_and_nothing_in_the_cluster_changes(bridge: Bridge) -> None:
    bridge.hold_in_api()
    bridge.repositories.ok("set", TENANT, "--environment", "dev", "--set", "logLevel=ERROR")
    bridge.dev.looked_at_inputs()
    bridge.dev.released(SERVICE, "logLevel", "ERROR")
    before = bridge.everything()
    bridge.switch("git")
    for kind, name in (each.split("/") for each in OF_TOKEN):
        bridge.dev.kube.wait_gone(kind, name, bridge.dev.namespace)
    assert bridge.everything() == before
    original = bridge.original
    assert [bridge.repositories.read(path) for path in original] == [original[INPUT].replace("DEBUG", "ERROR"), original[SECRETS]]
