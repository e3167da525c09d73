"""What both repositories begin with: every file is what Flux, the forges and the policy expect of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from flux_resourceset import render
from flux_resourceset.repositories import (
    approvals,
    blueprints,
    codeowners,
    layout,
    manifests,
    object_policy,
    policy,
    scaffold,
    scaffold_siblings,
    scaffold_templates,
    signatures,
    trees,
)
from flux_resourceset.repositories.layout import Cluster, Tenant

CHARTS = "https://charts.acme.example"
APP = "apps/standard-service"
EVERY_ENVIRONMENTS = [("dev",), ("dev", "prod"), ("dev", "staging", "prod"), ("one", "two", "three", "four")]
DIGEST = "sha256:" + "ab" * 32


def of(ci: str = "github", *environments: str) -> tuple[scaffold.Files, scaffold.Files]:
    made = scaffold.repositories("acme", environments or scaffold.ENVIRONMENTS, ci, CHARTS)
    first, second = made.values()
    return first, second


def tree(files: scaffold.Files) -> trees.Files:
    return trees.Files({path: text.encode() for path, text in files.items()})


def documents(text: str) -> list[Any]:
    return [manifest.data for manifest in manifests.of_bytes(text.encode())]


def one(files: scaffold.Files, path: str, kind: str) -> Any:
    (found,) = [each for each in documents(files[path]) if each["kind"] == kind]
    return found


def blueprint(files: scaffold.Files) -> blueprints.Blueprint:
    found = blueprints.of_tree(tree(files), "standard-service")
    assert found is not None
    return found


def objects(files: scaffold.Files, **inputs: Any) -> list[Any]:
    example = json.loads(files[f"{APP}/example.json"])
    return blueprint(files).objects("payment-app", "payment-dev", {**example, **inputs}, render.resourceset)


# Both


@pytest.mark.parametrize("ci", ["github", "gitlab"])
@pytest.mark.parametrize("environments", EVERY_ENVIRONMENTS)
def test_every_file_can_be_read_and_no_place_is_left_open(ci: str, environments: tuple[str, ...]) -> None:
    for files in of(ci, *environments):
        for path, text in files.items():
            assert not re.search(r"@[A-Z]+(:text)?@", text), path
            assert text.endswith("\n") or path.endswith("/.gitkeep"), path
            assert not text.endswith("\n\n"), path
            assert all(line == line.rstrip() for line in text.splitlines()), path
            if "workflows/" in path:  # `on` is no text to Kubernetes
                assert yaml.safe_load(text), path
            elif path.endswith((".yaml", ".yml")):
                assert manifests.of_bytes(text.encode()), path
            elif path.endswith(".json"):
                assert json.loads(text), path


def test_the_repositories_are_named_after_the_owner() -> None:
    assert list(scaffold.repositories("umbrella", ["dev"], "github", CHARTS)) == [
        "umbrella-platform-blueprints",
        "umbrella-fleet-config",
    ]
    charts = scaffold.default_charts("umbrella")
    for files in scaffold.repositories("umbrella", ["dev", "prod"], "github", charts).values():
        assert not re.search(r"\bacme\b", "".join(files.values()))


def test_each_forge_gets_its_own_pipelines() -> None:
    for files in of("github"):
        assert any(path.startswith(".github/workflows/") for path in files)
        assert not any(path.endswith(".gitlab-ci.yml") for path in files)
    for files in of("gitlab"):
        assert ".gitlab-ci.yml" in files
        assert not any(".github/" in path for path in files)


def test_a_value_that_a_template_asks_for_must_be_there() -> None:
    with pytest.raises(KeyError):
        scaffold_templates.filled(("tenant",), {"TENANT": "a"})


# Blueprints


def test_the_resourceset_waits_for_the_inputs_of_its_tenant_and_acts_as_the_tenant() -> None:
    files, _ = of()
    resourceset = one(files, f"{APP}/resourceset.yaml", "ResourceSet")
    assert (resourceset["apiVersion"], resourceset["metadata"]["name"]) == ("fluxcd.controlplane.io/v1", "standard-layered-app")
    spec = resourceset["spec"]
    assert spec["serviceAccountName"] == "tenant"
    assert [source["name"] for source in spec["inputsFrom"]] == ["${tenant}-inputs"]
    (dependency,) = spec["dependsOn"]
    assert dependency == {
        "apiVersion": "fluxcd.controlplane.io/v1",
        "kind": "ResourceSetInputProvider",
        "name": "${tenant}-inputs",
        "namespace": "${namespace}",
        "ready": True,
        "readyExpr": 'has(status.lastExportedRevision) && status.lastExportedRevision != ""',
    }


def test_flux_substitutes_two_names_and_nothing_else() -> None:
    files, _ = of()
    text = files[f"{APP}/resourceset.yaml"]
    assert set(re.findall(r"\$\{(\w+)\}", text)) == {"tenant", "namespace"}
    assert text.count("$") == len(re.findall(r"\$\{(?:tenant|namespace)\}", text))


def test_blueprints_name_no_environment_no_place_of_secrets_and_no_id() -> None:
    for ci in ("github", "gitlab"):
        files, _ = of(ci)
        for path, text in files.items():
            assert not re.search(r"\b(dev|qa|uat|staging|prod)\b", text), path
            assert not re.search(r"external-secrets|vault", text, re.IGNORECASE), path
            assert "inputs.id" not in text, path


def test_the_signature_is_closed_and_gives_no_defaults() -> None:
    files, _ = of()
    schema = blueprint(files).schema
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False
    assert list(schema["properties"]) == schema["required"] == [
        "appName", "image", "replicas", "logLevel", "environment", "secretName",
    ]  # fmt: skip
    assert '"default"' not in files[f"{APP}/inputs.schema.json"]
    assert not set(schema["properties"]) & set(blueprints.RESERVED)
    assert signatures.defect(schema) is None
    assert blueprint(files).violations(json.loads(files[f"{APP}/example.json"])) == []


@pytest.mark.parametrize(
    ("input", "value"),
    [
        ("appName", "a" * 50),
        ("appName", "Shop"),
        ("appName", "a\n---\n"),
        ("image", "a b"),
        ("image", "-a"),
        ("image", 'a"'),
        ("replicas", 101),
        ("replicas", -1),
        ("replicas", 1.5),
        ("replicas", "2"),
        ("logLevel", "TRACE"),
        ("environment", "Dev"),
        ("secretName", "a_b"),
        ("other", 1),
    ],
)
def test_the_signature_refuses_what_a_manifest_could_not_carry(input: str, value: Any) -> None:
    files, _ = of()
    example = json.loads(files[f"{APP}/example.json"])
    assert len(blueprint(files).violations({**example, input: value})) == 1


def test_it_makes_a_database_and_an_api_that_waits_for_it() -> None:
    files, _ = of()
    image = f"registry.acme.com/payment:v1@{DIGEST}"
    repository, database, api = objects(
        files, appName="payment-processor", image=image, replicas=3, logLevel="WARN", environment="x", secretName="a-secret"
    )
    assert (repository["kind"], repository["spec"]["url"]) == ("HelmRepository", CHARTS)
    assert "type" not in repository["spec"]
    assert [each["metadata"]["name"] for each in (database, api)] == ["payment-processor-db", "payment-processor-api"]
    assert "dependsOn" not in database["spec"]
    assert api["spec"]["dependsOn"] == [{"name": "payment-processor-db"}]
    assert api["spec"]["values"] == {
        "image": image, "replicas": 3, "logLevel": "WARN", "environment": "x", "existingSecret": "a-secret",
    }  # fmt: skip
    assert database["spec"]["values"]["existingSecret"] == "a-secret"
    for release in (database, api):
        assert (release["apiVersion"], release["kind"]) == ("helm.toolkit.fluxcd.io/v2", "HelmRelease")
        assert release["spec"]["serviceAccountName"] == "tenant"
        assert release["spec"]["chart"]["spec"]["sourceRef"]["name"] == repository["metadata"]["name"]
    assert {each["metadata"]["namespace"] for each in (repository, database, api)} == {"payment-dev"}


def test_charts_of_a_registry_are_said_to_be_there() -> None:
    files = scaffold.blueprints("acme", "oci://127.0.0.1:5000/charts", "github")
    (repository, *_) = objects(files)
    assert repository["spec"] == {"interval": "30m", "url": "oci://127.0.0.1:5000/charts", "type": "oci"}


@pytest.mark.parametrize(
    "hostile", ['a"\n---\nkind: Secret', "<< inputs.replicas >>", "${tenant}", "- a: b", "null", "1e3", "é\u2028"]
)
def test_whatever_an_input_holds_stays_one_value(hostile: str) -> None:
    files, _ = of()
    names = ("image", "logLevel", "environment", "secretName")
    _, _, api = objects(files, **dict.fromkeys(names, hostile), replicas=1)
    assert {name: api["spec"]["values"][name] for name in names if name != "secretName"} == dict.fromkeys(names[:3], hostile)
    assert api["spec"]["values"]["existingSecret"] == hostile


# Fleet config


@pytest.mark.parametrize("ci", ["github", "gitlab"])
@pytest.mark.parametrize("environments", EVERY_ENVIRONMENTS)
def test_the_policy_covers_every_path_and_the_owners_follow_from_it(ci: str, environments: tuple[str, ...]) -> None:
    _, files = of(ci, *environments)
    found = policy.read(files["fleet.yaml"].encode())
    assert found.names == environments
    _, uncovered = approvals.requirement(found.approvals, list(files))
    assert uncovered == []
    assert files["CODEOWNERS"] == codeowners.text(found.approvals, found.teams)
    assert {user for users in found.teams.values() for user in users} == set(found.people)


def required(found: policy.Policy, path: str) -> dict[str, int]:
    return approvals.requirement(found.approvals, [path])[0]


def test_the_first_environment_is_free_and_the_last_one_needs_most() -> None:
    _, files = of("github", "one", "two", "three", "four")
    found = policy.read(files["fleet.yaml"].encode())
    strict = {"sre": 2, "tech-leads": 1}
    assert [required(found, f"{name}/c/x") for name in found.names] == [{}, {"sre": 1}, {"sre": 1}, strict]
    for path in ("fleet.yaml", "keys/cosign.pub", ".github/workflows/gates.yaml", "CODEOWNERS", "terraform/flux.tf"):
        assert required(found, path) == strict
    assert [each.inputs for each in found.environments] == [("git", "api")] * 3 + [("git",)]


@pytest.mark.parametrize("ci", ["github", "gitlab"])
@pytest.mark.parametrize("environments", EVERY_ENVIRONMENTS)
def test_what_clusters_run_and_from_where_is_reviewed_in_every_environment(ci: str, environments: tuple[str, ...]) -> None:
    _, files = of(ci, *environments)
    found = policy.read(files["fleet.yaml"].encode())
    for name in (*found.names, "added-later"):
        for path in ("base/new.yaml", "base/sub/new.yaml", "flux/blueprints.yaml", "flux/sync.yaml", "flux-instance.yaml"):
            assert required(found, f"{name}/{name}-use1-01/{path}").get("sre", 0) >= 1


@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_the_policy_lists_the_sources_of_its_clusters_and_the_bots_of_its_forge(ci: str) -> None:
    _, files = of(ci, "one", "two")
    found = policy.read(files["fleet.yaml"].encode())
    assert found.sources is not None
    assert list(found.sources) == list(scaffold.default_sources("acme", ci))
    assert all(url in "".join(files[path] for path in files if path.startswith("one/")) for url in found.sources)
    assert list(found.bots) == (["noreply@github.com"] if ci == "github" else [])


def test_the_last_environment_takes_what_was_in_the_one_before_signed_and_tested() -> None:
    _, files = of()
    (rule,) = policy.read(files["fleet.yaml"].encode()).images
    assert (rule.environment, rule.field, rule.same_as, rule.soak) == ("prod", "image", "staging", 3600)
    assert rule.cosign == policy.Cosign("keys/cosign.pub", None, None, False, "https://acme.example/tested")


def test_a_lone_environment_has_nothing_before_it_and_is_protected() -> None:
    _, files = of("github", "prod")
    found = policy.read(files["fleet.yaml"].encode())
    assert found.images == ()
    assert found.environments[0].inputs == ("git", "api")
    assert required(found, "prod/x") == {"sre": 2, "tech-leads": 1}


def test_each_environment_has_a_cluster_with_the_sample() -> None:
    _, files = of()
    found = policy.read(files["fleet.yaml"].encode())
    assert list(layout.tenants(tree(files), found)) == [
        Tenant(name, f"{name}-use1-01", "payment-app") for name in ("dev", "staging", "prod")
    ]
    levels = []
    for tenant in layout.tenants(tree(files), found):
        for path in (*map(tenant.path, layout.TENANT_FILES), *map(tenant.where.path, layout.CLUSTER_FILES)):
            assert path in files
        values = one(files, tenant.path("input.yaml"), "ResourceSetInputProvider")["spec"]["defaultValues"]
        assert (values["appName"], values["secretName"]) == ("payment-processor", "payment-app-secrets")
        assert values["environment"] == tenant.environment
        assert re.fullmatch(r"registry\.acme\.com/payment:v2\.[^@]+@sha256:[0-9a-f]{64}", values["image"])
        assert blueprint(of()[0]).violations(values) == []
        levels.append(values["logLevel"])
    assert levels == ["DEBUG", "INFO", "INFO"]


def test_the_last_environment_has_the_image_of_the_one_before_and_the_first_one_is_ahead() -> None:
    _, files = of()
    images = [
        one(files, f"{name}/{name}-use1-01/tenants/payment-app/input.yaml", "ResourceSetInputProvider")["spec"]["defaultValues"][
            "image"
        ]
        for name in ("dev", "staging", "prod")
    ]
    assert images[0] != images[1] == images[2]


def tenant_documents() -> dict[str, list[Any]]:
    _, files = of()
    folder = "dev/dev-use1-01/tenants/payment-app"
    return {name: documents(files[f"{folder}/{name}"]) for name in layout.TENANT_FILES}


def test_the_namespace_its_account_and_its_rights_outlive_the_tenant() -> None:
    namespace, account, binding = tenant_documents()["namespace.yaml"]
    assert namespace["metadata"]["name"] == "payment-dev"
    assert namespace["metadata"]["labels"] == {"tenant": "payment-app", "environment": "dev"}
    assert (account["kind"], account["metadata"]["name"]) == ("ServiceAccount", "tenant")
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "tenant"}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "tenant", "namespace": "payment-dev"}]
    for each in (namespace, account, binding):
        assert each["metadata"]["annotations"] == {"kustomize.toolkit.fluxcd.io/prune": "disabled"}


def test_the_sync_takes_the_blueprint_into_the_namespace_and_may_make_nothing_but_resourcesets() -> None:
    _, files = of()
    (sync,) = tenant_documents()["sync.yaml"]
    assert sync["metadata"] == {"name": "payment-app-sync", "namespace": "flux-system"}
    spec = sync["spec"]
    assert spec["sourceRef"] == {"kind": "GitRepository", "name": "platform-blueprints"}
    assert (spec["path"], spec["targetNamespace"], spec["prune"]) == (f"./{APP}", "payment-dev", True)
    assert spec["postBuild"] == {"substitute": {"tenant": "payment-app", "namespace": "payment-dev"}}
    role = one(files, "dev/dev-use1-01/base/blueprints-account.yaml", "ClusterRole")
    account = one(files, "dev/dev-use1-01/base/blueprints-account.yaml", "ServiceAccount")
    assert spec["serviceAccountName"] == account["metadata"]["name"] == "blueprints"
    assert [(rule["apiGroups"], rule["resources"]) for rule in role["rules"]] == [(["fluxcd.controlplane.io"], ["resourcesets"])]


def test_secrets_come_from_the_path_of_tenant_and_environment() -> None:
    store, secret = tenant_documents()["secrets.yaml"]
    assert (store["kind"], store["metadata"]["name"], store["metadata"]["namespace"]) == (
        "SecretStore",
        "cluster-vault",
        "payment-dev",
    )
    assert {store["apiVersion"], secret["apiVersion"]} == {"external-secrets.io/v1"}
    assert secret["spec"]["secretStoreRef"] == {"kind": "SecretStore", "name": "cluster-vault"}
    assert secret["metadata"]["name"] == secret["spec"]["target"]["name"] == "payment-app-secrets"
    (item,) = secret["spec"]["data"]
    assert item == {
        "secretKey": "db_password", "remoteRef": {"key": "secret/data/payment-app/dev", "property": "db_password"},
    }  # fmt: skip


def test_no_two_clusters_share_a_vault() -> None:
    _, files = of()
    stores = [documents(text)[0]["spec"]["provider"]["vault"] for path, text in files.items() if path.endswith("/secrets.yaml")]
    assert len({(store["server"], store["path"]) for store in stores}) == len(stores) == 3


def test_flux_follows_its_cluster_and_pins_the_blueprints() -> None:
    _, files = of("gitlab")
    for name in ("dev", "staging", "prod"):
        folder = f"{name}/{name}-use1-01"
        sync = one(files, f"{folder}/flux-instance.yaml", "FluxInstance")["spec"]["sync"]
        assert (sync["kind"], sync["ref"], sync["path"]) == ("GitRepository", "refs/heads/main", f"{folder}/flux")
        assert sync["url"] == "https://gitlab.com/acme/acme-fleet-config.git"
        source = one(files, f"{folder}/flux/blueprints.yaml", "GitRepository")
        assert source["metadata"] == {"name": "platform-blueprints", "namespace": "flux-system"}
        assert source["spec"]["ref"] == {"tag": "v1.0.0"}
        first, second = documents(files[f"{folder}/flux/sync.yaml"])
        assert [each["metadata"]["name"] for each in (first, second)] == ["base", "tenants"]
        assert "dependsOn" not in first["spec"]
        assert second["spec"]["dependsOn"] == [{"name": "base"}]
        for each in (first, second):
            assert each["spec"]["prune"] is each["spec"]["wait"] is True
            assert each["spec"]["path"] == f"./{folder}/{each['metadata']['name']}"
            assert any(path.startswith(each["spec"]["path"].removeprefix("./") + "/") for path in files)


def test_the_folder_of_tenants_stays_when_the_last_one_goes() -> None:
    made = scaffold.cluster(Cluster("dev", "dev-1"), scaffold.Sources("a", "b"), "v1.0.0")
    assert made["dev/dev-1/tenants/.gitkeep"] == ""


def test_a_tenant_may_do_nothing_beyond_its_namespace() -> None:
    _, files = of()
    role = one(files, "dev/dev-use1-01/base/tenant-role.yaml", "ClusterRole")
    forbidden = {
        "*",
        "roles",
        "rolebindings",
        "clusterroles",
        "clusterrolebindings",
        "namespaces",
        "resourcesets",
        "kustomizations",
    }
    for rule in role["rules"]:
        assert not forbidden & {*rule["resources"], *rule["verbs"], *rule["apiGroups"]}
        assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"])


def test_every_admission_policy_is_bound_and_denies() -> None:
    _, files = of()
    base = [each for path, text in files.items() if path.startswith("dev/dev-use1-01/base/") for each in documents(text)]
    policies = {each["metadata"]["name"] for each in base if each["kind"] == "ValidatingAdmissionPolicy"}
    bindings = {each["spec"]["policyName"]: each for each in base if each["kind"] == "ValidatingAdmissionPolicyBinding"}
    assert policies == set(bindings) == {"images", "release-images", "cluster-admin", "namespace-labels", "tenant-accounts"}
    assert all(each["spec"]["validationActions"] == ["Deny"] for each in bindings.values())


def test_no_manifest_of_the_sample_breaks_the_rules_of_its_own_cluster() -> None:
    first, files = of()
    manifests_of_clusters = [
        each
        for path, text in files.items()
        if path.endswith(".yaml") and path.startswith(("dev/", "staging/", "prod/"))
        for each in documents(text)
    ]
    assert len(manifests_of_clusters) > 60
    assert [fault for each in manifests_of_clusters for fault in object_policy.faults(each)] == []
    assert [fault for each in objects(first) for fault in object_policy.faults_of_tenant(each, "payment-dev")] == []


# Pipelines


def steps(files: scaffold.Files) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, text in files.items():
        if "/workflows/" in path or path.startswith(".github/workflows/"):
            for job in yaml.safe_load(text)["jobs"].values():
                yield from ((path, step) for step in job["steps"])


def test_no_data_of_an_event_gets_into_a_script() -> None:
    for files in of():
        scripts = [(path, step["run"]) for path, step in steps(files) if "run" in step]
        assert scripts
        assert [path for path, script in scripts if "${{" in script] == []


def test_actions_are_pinned_by_commit() -> None:
    for files in of():
        used = [step["uses"] for _, step in steps(files) if "uses" in step]
        assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", each)] == []


def test_the_gates_check_out_main_and_never_the_change() -> None:
    _, files = of()
    text = files[".github/workflows/gates.yaml"]
    workflow = yaml.safe_load(text)
    assert set(workflow[True]) == {"pull_request_target", "workflow_run"}  # `on` is true to YAML 1.1
    assert workflow["permissions"] == {}
    checkouts = [step["with"] for path, step in steps(files) if "checkout@" in step.get("uses", "")]
    assert [each.get("ref") for each in checkouts] == ["main", None]
    assert checkouts[1]["repository"].endswith("/acme-platform-blueprints")
    for _, step in steps(files):
        assert not re.search(r"git (checkout|switch|merge |reset|worktree)", step.get("run", ""))
        assert "head" not in json.dumps(step.get("with", {}))


def test_the_workflow_that_a_change_can_rewrite_has_no_rights() -> None:
    _, files = of()
    workflow = yaml.safe_load(files[".github/workflows/review.yaml"])
    assert set(workflow[True]) == {"pull_request_review"}
    assert workflow["permissions"] == {}


def test_the_gates_are_the_same_for_both_forges() -> None:
    commands = (
        "fleet lint --at",
        "fleet diff --from",
        "fleet check-image --base HEAD --head",
        "fleet check-approvals --base HEAD --head",
    )
    for ci, path in (("github", ".github/workflows/gates.yaml"), ("gitlab", ".gitlab-ci.yml")):
        _, files = of(ci)
        assert [command for command in commands if command not in files[path]] == []


def test_gitlab_checks_nothing_out() -> None:
    _, files = of("gitlab")
    pipeline = yaml.safe_load(files[".gitlab-ci.yml"])
    assert pipeline["variables"] == {"GIT_STRATEGY": "none"}
    assert not re.search(r"git (checkout|switch|merge |reset)", files[".gitlab-ci.yml"])


def test_main_takes_signed_commits_that_passed_the_gates_and_release_tags_never_move() -> None:
    first, second = of()
    rules = {rule["type"]: rule.get("parameters") for rule in json.loads(second[".github/rulesets/main.json"])["rules"]}
    assert {"deletion", "non_fast_forward", "required_signatures", "pull_request", "required_status_checks"} == set(rules)
    assert [check["context"] for check in rules["required_status_checks"]["required_status_checks"]] == ["fleet"]
    assert "context=fleet" in second[".github/workflows/gates.yaml"]
    tags = json.loads(first[".github/rulesets/tags.json"])
    assert (tags["target"], {rule["type"] for rule in tags["rules"]}) == ("tag", {"deletion", "non_fast_forward", "update"})


# What a new cluster or tenant takes over


def changed(**files: str) -> tuple[trees.Files, policy.Policy]:
    _, made = of()
    return tree({**made, **files}), policy.read(made["fleet.yaml"].encode())


def pin(environment: str, cluster: str, tag: str) -> dict[str, str]:
    place = Cluster(environment, cluster)
    return scaffold.cluster(place, scaffold.Sources("https://a", "https://b"), tag)


def test_a_new_cluster_is_pinned_as_most_of_its_environment_are() -> None:
    files, by = changed(**pin("dev", "dev-2", "v2.0.0"), **pin("dev", "dev-3", "v2.0.0"))
    assert scaffold_siblings.pin(files, by, "dev") == "v2.0.0"
    assert scaffold_siblings.pin(files, by, "staging") == "v1.0.0"


def test_a_cluster_that_says_nothing_is_not_asked() -> None:
    files, by = changed(**{"dev/dev-use1-01/flux/blueprints.yaml": "a: [", "dev/dev-use1-01/flux-instance.yaml": "[]"})
    assert scaffold_siblings.pin(files, by, "dev") is None
    assert scaffold_siblings.sources(files, by, "dev") == scaffold.default_sources("acme", "github")


def test_addresses_are_those_of_the_clusters_nearby() -> None:
    files, by = changed(**pin("prod", "prod-0", "v1.0.0"))
    assert scaffold_siblings.sources(files, by, "prod") == scaffold.Sources("https://a", "https://b")
    assert scaffold_siblings.sources(files, by, "staging") == scaffold.default_sources("acme", "github")


def test_the_place_of_secrets_is_that_of_the_other_tenants_of_the_cluster() -> None:
    store = scaffold.Store("https://vault.example:8200", "kv", "kubernetes/dev")
    other = scaffold.tenant(Tenant("dev", "dev-use1-01", "a-tenant"), "a", "standard-service", {}, store)
    files, by = changed(**other)
    assert scaffold_siblings.store(files, by, Cluster("dev", "dev-use1-01")) == store
    assert scaffold_siblings.store(files, by, Cluster("dev", "new")).server == "https://vault.new.acme.example:8200"


def test_the_name_is_that_of_the_blueprints() -> None:
    _, by = changed()
    assert scaffold_siblings.name(by) == "acme"
    assert scaffold_siblings.name(by._replace(checkout="../umbrella-platform-blueprints")) == "umbrella"
    assert scaffold_siblings.name(by._replace(checkout="../elsewhere")) == "acme"
    assert scaffold_siblings.name(by._replace(checkout=None)) == "acme"


def test_the_inputs_of_a_tenant_are_read_as_they_were_given() -> None:
    values = {"a": "1e3", "b": "0o17", "c": "x: y", "d": "line\nline", "e": 2, "f": True, "g": "", "h": "'", "i": 1.5}
    made = scaffold.tenant(
        Tenant("dev", "dev-1", "a"), "a-dev", "b", values, scaffold.default_store("acme", "dev-1"), "kv/{environment}/{tenant}"
    )
    (provider,) = documents(made["dev/dev-1/tenants/a/input.yaml"])
    assert provider["spec"] == {"type": "Static", "defaultValues": values}
    _, secret = documents(made["dev/dev-1/tenants/a/secrets.yaml"])
    assert secret["spec"]["data"][0]["remoteRef"]["key"] == "kv/dev/a"


def test_a_tenant_without_inputs_is_one_too() -> None:
    made = scaffold.tenant(Tenant("dev", "dev-1", "a"), "a-dev", "b", {}, scaffold.default_store("acme", "dev-1"))
    (provider,) = documents(made["dev/dev-1/tenants/a/input.yaml"])
    assert provider["spec"]["defaultValues"] == {}
