"""`bootstrap`: all that a cluster needs to phone home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import live
from cli.command import Cli
from flux_resourceset import cluster_bundle
from flux_resourceset.render import dialect

API = "https://fleet.example.com"
CLUSTER = "demo-cluster-01"
VIEWS = {
    "namespaces", "platform-components", "rolebindings",
    "external-secrets", "ingress-routes", "network-policies", "resource-quotas",
}  # fmt: skip

Objects = dict[tuple[str, str], dict[str, Any]]


def objects(text: str) -> Objects:
    documents = [document for _, document in dialect.documents(text)]
    named = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    assert len(named) == len(documents)
    return named


def printed(cli: Cli, *options: str, stdin: str = "") -> Objects:
    return objects(cli.ok("bootstrap", CLUSTER, "--api-url", API, *options, stdin=stdin).out)


@pytest.fixture(scope="module")
def bundle(server: live.Server, tmp_path_factory: pytest.TempPathFactory) -> Objects:
    """What is printed when nothing special is asked."""
    return printed(Cli(tmp_path_factory.mktemp("home"), server.url))


def test_it_prints_identity_token_and_a_pair_for_every_view(bundle: Objects) -> None:
    pairs = {(kind, view) for view in VIEWS for kind in ("ResourceSetInputProvider", "ResourceSet")}
    assert set(bundle) == {("ConfigMap", "cluster-identity"), ("Secret", "internal-api-token"), *pairs}


def test_the_identity_is_immutable_and_names_the_cluster(bundle: Objects) -> None:
    identity = bundle["ConfigMap", "cluster-identity"]
    assert identity["immutable"] is True
    assert identity["metadata"]["namespace"] == "flux-system"
    assert identity["data"] == {
        "CLUSTER_NAME": CLUSTER,
        "CLUSTER_DNS": "demo-cluster-01.k8s.example.com",
        "ENVIRONMENT": "dev",
        "INTERNAL_API_URL": API,
    }


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_a_provider_polls_its_view_of_this_cluster(view: str, bundle: Objects) -> None:
    provider = bundle["ResourceSetInputProvider", view]
    assert provider["metadata"] == {
        "name": view,
        "namespace": "flux-system",
        "annotations": {
            "fluxcd.controlplane.io/reconcileEvery": "5m",
            "reconcile.fluxcd.io/requestedAt": "for demo-cluster-01.k8s.example.com",
        },
    }
    assert provider["spec"] == {
        "type": "ExternalService",
        "url": f"{API}/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/{view}",
        "secretRef": {"name": "internal-api-token"},
        "filter": {"limit": 10000},
    }


def test_every_url_is_one_that_the_server_answers(cli: Cli, server: live.Server) -> None:
    text = cli.ok("bootstrap", CLUSTER, "--api-url", server.url).out
    urls = [each["spec"]["url"] for (kind, _), each in objects(text).items() if kind == "ResourceSetInputProvider"]
    with server.client(live.READ) as client:
        assert [client.get(url).status_code for url in urls] == [200] * len(VIEWS)


def test_a_resourceset_waits_for_its_own_cluster_and_for_inputs_of_it(bundle: Objects) -> None:
    dns = "demo-cluster-01.k8s.example.com"
    for view in VIEWS:
        spec = bundle["ResourceSet", view]["spec"]
        assert spec["inputsFrom"] == [{"kind": "ResourceSetInputProvider", "name": view}]
        identity, provider = spec["dependsOn"]
        assert (identity["kind"], identity["name"], identity["ready"]) == ("ConfigMap", "cluster-identity", True)
        assert identity["readyExpr"] == f'data.CLUSTER_DNS == "{dns}"'
        assert (provider["kind"], provider["name"], provider["ready"]) == ("ResourceSetInputProvider", view, True)
        assert provider["readyExpr"].startswith('has(status.lastExportedRevision) && status.lastExportedRevision != "" && ')
        assert f'spec.url.contains("/clusters/{dns}/")' in provider["readyExpr"]
        assert f'input.cluster.dns == "{dns}"' in provider["readyExpr"]
        assert "${" not in identity["readyExpr"] + provider["readyExpr"]


def test_templates_are_the_shipped_files(bundle: Objects) -> None:
    def unlike(resourceset: Any) -> dict[str, Any]:
        """Without what differs from cluster to cluster."""
        return {**resourceset, "spec": {**resourceset["spec"], "dependsOn": len(resourceset["spec"]["dependsOn"])}}

    for view in ("namespaces", "platform-components", "rolebindings"):
        ((_, shipped),) = dialect.documents(cluster_bundle.resourceset(view) or "")
        assert unlike(bundle["ResourceSet", view]) == unlike(shipped)
    ((_, beside),) = dialect.documents((live.ROOT / "examples" / "kinds" / "network_policies.resourceset.yaml").read_text())
    assert unlike(bundle["ResourceSet", "network-policies"]) == unlike(beside)


def test_a_resourceset_comes_before_its_provider(cli: Cli) -> None:
    """One that is in the cluster already must not see what the provider of another cluster brings."""
    text = cli.ok("bootstrap", CLUSTER, "--api-url", API).out
    order = [(document["kind"], document["metadata"]["name"]) for _, document in dialect.documents(text)]
    for view in VIEWS:
        assert order.index(("ResourceSet", view)) < order.index(("ResourceSetInputProvider", view))
    assert order[0] == ("ConfigMap", "cluster-identity")


FORGETFUL = """\
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: network-policies, namespace: flux-system}
spec:
  dependsOn:
    - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: things.example.com}
  inputsFrom:
    - {kind: ResourceSetInputProvider, name: %s}
  resourcesTemplate: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: << inputs.id | quote >>, namespace: flux-system}
"""


@pytest.mark.parametrize(("source", "guards"), [("network-policies", 2), ("somewhere-else", 1)])
def test_a_template_that_forgot_them_gets_the_guards_and_keeps_what_it_waits_for(
    source: str, guards: int, tmp_path: Path
) -> None:
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    (kinds / "network_policies.yaml").write_text((live.ROOT / "examples" / "kinds" / "network_policies.yaml").read_text())
    (kinds / "network_policies.resourceset.yaml").write_text(FORGETFUL % source)
    with live.serving(tmp_path, SEED_FILE=str(live.ROOT / "data" / "seed.json"), RESOURCES_DIR=str(kinds)) as server:
        bundle = printed(Cli(tmp_path, server.url))
    shipped = bundle["ResourceSet", "namespaces"]["spec"]["dependsOn"]
    *added, own = bundle["ResourceSet", "network-policies"]["spec"]["dependsOn"]
    assert added == [{**each, "name": each["name"].replace("namespaces", "network-policies")} for each in shipped][:guards]
    assert own == {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": "things.example.com"}


@pytest.mark.parametrize("url", ["http://fleet.internal:8080/", "HTTP://fleet.internal:8080"])
def test_plain_http_is_marked_insecure(url: str, cli: Cli) -> None:
    text = cli.ok("bootstrap", CLUSTER, "--api-url", url).out
    provider = objects(text)["ResourceSetInputProvider", "namespaces"]
    assert provider["spec"]["insecure"] is True
    assert provider["spec"]["url"].startswith("http://fleet.internal:8080/api/v2/")


def test_the_interval_is_taken_over(cli: Cli) -> None:
    bundle = printed(cli, "--interval", "1h30m")
    annotations = bundle["ResourceSetInputProvider", "rolebindings"]["metadata"]["annotations"]
    assert annotations["fluxcd.controlplane.io/reconcileEvery"] == "1h30m"


def test_without_a_token_the_secret_says_that_it_is_missing(cli: Cli) -> None:
    done = cli.ok("bootstrap", CLUSTER, "--api-url", API)
    assert objects(done.out)["Secret", "internal-api-token"]["stringData"] == {"token": "REPLACE-ME"}
    assert "placeholder" in done.err
    assert live.READ not in done.out


def test_the_token_comes_from_a_file_or_from_stdin(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret-token\n")
    for bundle in (
        printed(cli, "--token-file", str(tmp_path / "token")),
        printed(cli, "--token-file", "-", stdin="s3cret-token\n"),
    ):
        assert bundle["Secret", "internal-api-token"]["stringData"] == {"token": "s3cret-token"}


def test_an_existing_secret_is_named_and_none_is_printed(cli: Cli) -> None:
    bundle = printed(cli, "--existing-secret", "fleet-token")
    assert "Secret" not in {kind for kind, _ in bundle}
    assert {
        each["spec"]["secretRef"]["name"] for (kind, _), each in bundle.items() if kind == "ResourceSetInputProvider"
    } == {"fleet-token"}  # fmt: skip


def test_a_directory_gets_a_file_for_each_and_the_token_is_for_its_owner_alone(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret-token")
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "internal-api-token.yaml").write_text("from before, for everybody")
    done = cli.ok("bootstrap", CLUSTER, "--api-url", API, "--token-file", str(tmp_path / "token"), "--directory", str(folder))
    assert done.out == ""
    text = "".join(path.read_text() for path in sorted(folder.iterdir()))
    assert objects(text) == printed(cli, "--token-file", str(tmp_path / "token"))
    assert (folder / "internal-api-token.yaml").stat().st_mode & 0o777 == 0o600


def test_a_bundle_is_also_a_list_of_json_or_names(cli: Cli) -> None:
    words = ("bootstrap", CLUSTER, "--api-url", API, "--existing-secret", "fleet-token")
    told = cli.ok(*words, "-o", "json").data
    assert {(each["kind"], each["metadata"]["name"]) for each in told["items"]} == objects(cli.ok(*words).out).keys()
    assert "configmap/cluster-identity" in cli.ok(*words, "-o", "name").out.split()


def test_a_kind_without_template_gets_its_provider_and_a_word_about_it(tmp_path: Path) -> None:
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    (kinds / "network_policies.yaml").write_text((live.ROOT / "examples" / "kinds" / "network_policies.yaml").read_text())
    with live.serving(tmp_path, SEED_FILE=str(live.ROOT / "data" / "seed.json"), RESOURCES_DIR=str(kinds)) as server:
        done = Cli(tmp_path, server.url).ok("bootstrap", CLUSTER, "--api-url", API)
    bundle = objects(done.out)
    assert ("ResourceSetInputProvider", "network-policies") in bundle
    assert ("ResourceSet", "network-policies") not in bundle
    assert "network-policies has no ResourceSet" in done.err


def test_a_server_that_only_reads_is_told_as_such(tmp_path: Path) -> None:
    memory = {"STORE_BACKEND": "memory", "SEED_FILE": str(live.ROOT / "data" / "seed.json"), "API_MODE": "read-only"}
    with live.serving(tmp_path, **memory) as server:
        (line,) = Cli(tmp_path, server.url).refused(4, "bootstrap", CLUSTER, "--api-url", API)
    assert "API_MODE=crud" in line


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ((CLUSTER,), 2, "--api-url is missing"),
        ((CLUSTER, "--api-url", "fleet.example.com"), 2, "--api-url"),
        ((CLUSTER, "--api-url", "https://u:p@fleet.example.com"), 2, "--api-url"),
        ((CLUSTER, "--api-url", API, "--interval", "5"), 2, "--interval"),
        ((CLUSTER, "--api-url", API, "--interval", "0s"), 2, "--interval"),
        ((CLUSTER, "--api-url", API, "--interval", "99999999999999999h"), 2, "--interval"),
        ((CLUSTER, "--api-url", API, "--token-file", "/nowhere/token"), 2, "/nowhere/token"),
        ((CLUSTER, "--api-url", API, "--token-file", "-"), 2, "no token"),
        ((CLUSTER, "--api-url", API, "--existing-secret", "No Name"), 2, "--existing-secret"),
        ((CLUSTER, "--api-url", API, "--existing-secret", "x", "--token-file", "y"), 2, "exclude each other"),
        (("nobody", "--api-url", API), 4, "nobody"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(options: tuple[str, ...], code: int, word: str, cli: Cli) -> None:
    done = cli("bootstrap", *options)
    assert done.code == code
    assert word in done.lines[0]
    assert done.out == ""
