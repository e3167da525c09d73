"""Every rule of `fleet lint`: a fault that is planted into what init makes is found where it stands; its clean twin is not."""

from __future__ import annotations

import pytest

from flux_resourceset.repositories import findings
from unit.lint_trees import (
    AWS,
    DEV,
    DIGEST,
    FLUX,
    HUB,
    INPUT,
    INSTANCE,
    JWT,
    KEY,
    LAB,
    NAMESPACE,
    PIN,
    PROD,
    ROLE,
    SECRETS,
    STAGING,
    SYNC,
    TENANT,
    A,
    B,
    Releases,
    copied,
    line_of,
    lint,
    moved,
    rules,
    with_added,
    with_edit,
    without,
)


def test_what_init_makes_is_clean() -> None:
    assert lint(B) == []


# One edit each: the rule, the file, what is replaced and by what; the line is that of the new text

EDITS = [
    # manifest: kinds, versions, names
    ("manifest", NAMESPACE, "kind: ServiceAccount", "kind: ConfigMap"),
    ("manifest", NAMESPACE, "  name: tenant\n  namespace", "  name: default\n  namespace"),
    ("manifest", NAMESPACE, "apiVersion: rbac.authorization.k8s.io/v1", "apiVersion: rbac.authorization.k8s.io/v1beta1"),
    ("manifest", NAMESPACE, "kustomize.toolkit.fluxcd.io/prune: disabled", "kustomize.toolkit.fluxcd.io/prune: enabled"),
    ("manifest", NAMESPACE, "    tenant: payment-app", "    tenant: another-app"),
    ("manifest", NAMESPACE, "  kind: ClusterRole\n  name: tenant", "  kind: ClusterRole\n  name: edit"),
    ("manifest", NAMESPACE, "    namespace: payment-dev", "    namespace: payment-prod"),
    ("manifest", INPUT, "kind: ResourceSetInputProvider", "kind: ResourceSet"),
    ("manifest", INPUT, "apiVersion: fluxcd.controlplane.io/v1", "apiVersion: fluxcd.controlplane.io/v1beta1"),
    ("manifest", INPUT, "name: payment-app-inputs", "name: payment-inputs"),
    ("manifest", INPUT, "namespace: payment-dev", "namespace: payment-test"),
    ("manifest", INPUT, "type: Static", "type: Flux"),
    ("manifest", INPUT, "  defaultValues:", "  values:"),
    ("manifest", SECRETS, "apiVersion: external-secrets.io/v1\nkind: S", "apiVersion: external-secrets.io/v1beta1\nkind: S"),
    ("manifest", SECRETS, "apiVersion: external-secrets.io/v1\nkind: E", "apiVersion: external-secrets.io/v1beta1\nkind: E"),
    ("manifest", SECRETS, "kind: SecretStore\nmetadata", "kind: ClusterSecretStore\nmetadata"),
    ("manifest", SECRETS, "    kind: SecretStore", "    kind: ClusterSecretStore"),
    ("manifest", SECRETS, "  namespace: payment-dev", "  namespace: payment-prod"),
    ("manifest", SECRETS, "    name: cluster-vault", "    name: other-vault"),
    ("manifest", SYNC, "apiVersion: kustomize.toolkit.fluxcd.io/v1", "apiVersion: kustomize.toolkit.fluxcd.io/v1beta2"),
    ("manifest", SYNC, "kind: Kustomization", "kind: ResourceSet"),
    ("manifest", SYNC, "name: payment-app-sync", "name: payment-sync"),
    ("manifest", SYNC, "namespace: flux-system", "namespace: payment-dev"),
    ("manifest", SYNC, "name: platform-blueprints", "name: flux-system"),
    ("manifest", SYNC, "path: ./apps/standard-service", "path: ./elsewhere/standard-service"),
    ("manifest", SYNC, "targetNamespace: payment-dev", "targetNamespace: payment-prod"),
    ("manifest", SYNC, "prune: true", "prune: false"),
    ("manifest", SYNC, "      tenant: payment-app", "      tenant: another-app"),
    ("manifest", SYNC, "      tenant: payment-app", "      cluster: dev"),
    ("manifest", SYNC, "  postBuild:\n", "  patches: [{patch: x}]\n  postBuild:\n"),
    ("manifest", SYNC, "  postBuild:\n", "  kubeConfig: {secretRef: {name: x}}\n  postBuild:\n"),
    ("manifest", SYNC, "  postBuild:\n", "  decryption: {provider: sops}\n  postBuild:\n"),
    ("manifest", SYNC, "  postBuild:\n", "  commonMetadata: {labels: {tenant: x}}\n  postBuild:\n"),
    ("manifest", SYNC, "  postBuild:\n", "  postBuild:\n    substituteFrom: [{kind: ConfigMap, name: x}]\n"),
    ("manifest", INSTANCE, "name: flux\n", "name: another\n"),
    ("manifest", INSTANCE, f"path: {DEV}/flux", f"path: {PROD}/flux"),
    ("manifest", INSTANCE, "kind: FluxInstance", "kind: FluxReport"),
    ("manifest", PIN, "name: platform-blueprints", "name: blueprints"),
    ("manifest", PIN, "apiVersion: source.toolkit.fluxcd.io/v1", "apiVersion: source.toolkit.fluxcd.io/v1beta2"),
    ("manifest", FLUX, "  name: base\n", "  name: basis\n"),
    ("manifest", FLUX, "    - name: base", "    - name: other"),
    ("manifest", FLUX, "prune: true", "prune: false"),
    ("manifest", FLUX, "wait: true", "wait: 1"),
    ("manifest", FLUX, f"path: ./{DEV}/tenants", f"path: ./{PROD}/tenants"),
    ("manifest", ROLE, "kind: ClusterRole\nmetadata:\n  name: tenant", "kind: ClusterRole\nmetadata:\n  name: tenants"),
    ("manifest", ROLE, "apiVersion: rbac", "Version: rbac"),
    # yaml
    ("yaml", INPUT, "    replicas: 2", "    replicas: 2\n    replicas: 3"),
    ("yaml", NAMESPACE, "kind: Namespace", "kind: [Namespace"),
    ("yaml", PIN, "  ref:", "  ref: *nowhere"),
    ("yaml", ROLE, "rules:", "rules:\n1: x\nrules:"),
    # inputs
    ("inputs", INPUT, "    replicas: 2", "    replicas: many"),
    ("inputs", INPUT, "    logLevel: DEBUG", "    logLevel: LOUD"),
    ("inputs", INPUT, "    replicas: 2", "    replicas: 2\n    colour: red"),
    # environment
    ("environment", INPUT, "    environment: dev", "    environment: prod"),
    ("environment", NAMESPACE, "    environment: dev", "    environment: prod"),
    # secret-value
    ("secret-value", INPUT, "    replicas: 2", "    replicas: 2\n    dbPassword: hunter2"),
    ("secret-value", INPUT, "    replicas: 2", "    replicas: 2\n    nested: {list: [{api_key: x}]}"),
    ("secret-value", INPUT, "    replicas: 2", f"    replicas: 2\n    note: {AWS}"),
    ("secret-value", INPUT, "    replicas: 2", f"    replicas: 2 # {HUB}"),
    ("secret-value", SECRETS, "    name: cluster-vault", f"    name: cluster-vault # {LAB}"),
    ("secret-value", SYNC, "  interval: 10m", f"  interval: 10m # {JWT}"),
    ("secret-value", NAMESPACE, "kind: Namespace", f"# {KEY}\nkind: Namespace"),
    ("secret-value", ROLE, "kind: ClusterRole", f'x: "\\x{ord(AWS[0]):02x}{AWS[1:]}"\nkind: ClusterRole'),
    # secret-name, secret-path
    ("secret-name", INPUT, "    secretName: payment-app-secrets", "    secretName: payment-secrets"),
    ("secret-path", SECRETS, "key: secret/data/payment-app/dev", "key: secret/data/payment-app/prod"),
    ("secret-path", SECRETS, "key: secret/data/payment-app/dev", "key: secret/data/orders/dev"),
    # pin
    ("pin", PIN, "tag: v1.0.0", "branch: main"),
    ("pin", PIN, "tag: v1.0.0", "tag: v1.0.0\n    branch: main"),
    ("pin", PIN, "tag: v1.0.0", "tag: v9.9.9"),
    ("pin", PIN, "tag: v1.0.0", 'semver: ">=1.0.0"'),
    ("pin", PIN, "tag: v1.0.0", "tag: v1.0.0~1"),
    ("pin", PIN, "tag: v1.0.0", "tag: 1.0"),
    # blueprint
    ("blueprint", SYNC, "path: ./apps/standard-service", "path: ./apps/other-service"),
    # layout
    ("layout", NAMESPACE, "  name: payment-dev", '  name: "123"'),
    ("layout", NAMESPACE, "  name: payment-dev", "  name: kube-system"),
    ("layout", NAMESPACE, "  name: payment-dev", "  name: Payment"),
    # object-policy
    ("object-policy", NAMESPACE, "    tenant: payment-app\n", ""),
    ("object-policy", NAMESPACE, "  kind: ClusterRole\n  name: tenant", "  kind: ClusterRole\n  name: cluster-admin"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "path", "old", "new"), EDITS, ids=lambda value: value.strip().split("\n")[-1][:40])
def test_a_planted_fault_is_found_in_its_file(rule: str, path: str, old: str, new: str) -> None:
    found = [finding for finding in lint(with_edit(B, path, old, new)) if finding.rule == rule]
    assert found
    assert all(finding.severity == findings.ERROR and finding.message for finding in found)
    assert {finding.path for finding in found} <= {path, path.rpartition("/")[0]}


# Of the same places, but nothing is wrong

TWINS = [
    (NAMESPACE, "kind: Namespace", "kind: Namespace # its own"),
    (INPUT, "    replicas: 2", "    replicas: 7"),
    (INPUT, "    logLevel: DEBUG", '    "logLevel": "WARN"'),
    (INPUT, "    logLevel: DEBUG", "    logLevel: 'INFO' # an AKIA, ghp_, glpat- or eyJ alone is none"),
    (SECRETS, "  refreshInterval: 1h", "  refreshInterval: 2h"),
    (SECRETS, "    name: payment-app-secrets\n    creation", "    creation"),
    (SECRETS, "    kind: SecretStore\n", ""),
    (SYNC, "interval: 10m", "interval: 5m"),
    (SYNC, "path: ./apps/standard-service", "path: apps/standard-service/"),
    (FLUX, f"path: ./{DEV}/base", f"path: fleet/{DEV}/base"),
    (INSTANCE, "interval: 1m", "interval: 5m"),
    (PIN, "tag: v1.0.0", 'tag: "v1.0.0" # newest'),
    (ROLE, "rules:", "rules: # of all"),
]


@pytest.mark.parametrize(("path", "old", "new"), TWINS, ids=lambda value: value.strip().split("\n")[-1][:40])
def test_a_harmless_edit_is_no_finding(path: str, old: str, new: str) -> None:
    assert lint(with_edit(B, path, old, new)) == []


def test_the_line_is_that_of_the_value() -> None:
    for rule, old, new in (
        ("inputs", "    replicas: 2", "    replicas: many"),
        ("environment", "    environment: dev", "    environment: prod"),
        ("secret-value", "    replicas: 2", "    replicas: 2\n    dbPassword: hunter2"),
        ("secret-name", "    secretName: payment-app-secrets", "    secretName: others"),
        ("yaml", "    replicas: 2", "    replicas: 2\n    replicas: 3"),
    ):
        files = with_edit(B, INPUT, old, new)
        lines = {finding.line for finding in lint(files) if finding.rule == rule}
        assert lines == {line_of(files[INPUT], new.rpartition("\n")[2])}, rule


def test_a_required_input_that_is_missing_is_told() -> None:
    (finding,) = lint(with_edit(B, INPUT, "    replicas: 2\n", ""))
    assert finding.rule == "inputs"
    assert "replicas is required" in finding.message
    assert finding.line == line_of(B[INPUT], "  defaultValues:")


# Layout


@pytest.mark.parametrize(
    "path",
    [
        "clusters/dev-use1-01/base/x.yaml", "extra.yaml", "extra.yml", "dev/notes.txt", f"{DEV}/notes.txt",
        f"{DEV}/flux/more.yaml", f"{DEV}/base/sub/x.yaml", f"{DEV}/base/x.yml", f"{DEV}/tenants/x.yaml", f"{TENANT}/values.yaml",
        f"{TENANT}/more/x.yaml", f"{TENANT}/.gitkeep", "src/main.py", f"{DEV}/kustomization.yaml",
        ".sourceignore", "dev/.sourceignore", f"{DEV}/tenants/.sourceignore", f"{TENANT}/.sourceignore",
    ],
)  # fmt: skip
def test_a_misplaced_file_is_found(path: str) -> None:
    assert rules({**B, path: "x: 1\n"}) == [("layout", path)]


@pytest.mark.parametrize(
    "path",
    [
        "LICENSE", "Makefile", ".gitlab-ci.yml", ".pre-commit-config.yaml", "docs/adr/1.md", "keys/cosign.pub",
        "terraform/x/main.tf", ".github/workflows/more.yaml", ".gitlab/x.yml", "prod/.gitkeep", f"{DEV}/tenants/.gitkeep",
    ],
)  # fmt: skip
def test_what_a_repository_has_besides_is_free(path: str) -> None:
    assert rules({**B, path: "x: 1\n"}) == []


@pytest.mark.parametrize("path", [INPUT, NAMESPACE, SECRETS, SYNC, PIN, FLUX, INSTANCE])
def test_a_missing_file_is_found(path: str) -> None:
    assert ("layout", path) in rules(without(B, path))


def test_a_cluster_without_a_base_is_found() -> None:
    assert rules(without(B, f"{DEV}/base/")) == [("layout", f"{DEV}/base")]


@pytest.mark.parametrize("path", ["link", f"{DEV}/base/link.yaml", f"{TENANT}/link", "docs/link", "dev/link", ".github/link"])
def test_a_symlink_is_found_anywhere(path: str) -> None:
    assert rules(B, path) == [("layout", path)]


def test_a_symlink_in_the_place_of_a_file_is_told_once() -> None:
    found = [(finding.rule, finding.path) for finding in lint(without(B, SECRETS), [SECRETS])]
    assert found == [("layout", SECRETS)]


def test_what_a_base_lacks_is_not_told_of_files_that_cannot_be_read() -> None:
    assert rules(with_edit(B, ROLE, "  name: tenant\n", "  name: tenant\n  name: tenant\n")) == [("yaml", ROLE)]
    assert rules({**B, ROLE: "x" * 1_100_000}) == [("yaml", ROLE)]
    assert rules(without(B, ROLE), ROLE) == [("layout", ROLE)]
    assert rules(without(B, ROLE)) == [("manifest", f"{DEV}/base")]


def test_an_environment_is_a_folder() -> None:
    assert rules({**without(B, "dev/"), "dev": "x"}) == [("layout", "dev")]


def test_a_repository_inside_is_one_finding() -> None:
    inside = {f"{TENANT}/.git/config": "x", f"{TENANT}/.git/HEAD": "x", "terraform/module/.git": "gitdir: x"}
    assert rules({**B, **inside}) == [("layout", TENANT), ("layout", "terraform/module")]


@pytest.mark.parametrize("name", ["Dev-1", "a_b", "on", "null", "123", "1e3", "0x1f", "2024-01-01", "a" * 64, "-a"])
def test_a_cluster_cannot_have_every_name(name: str) -> None:
    assert ("layout", f"dev/{name}") in rules(moved(B, f"{DEV}/", f"dev/{name}/"))


def test_every_part_of_the_tree_has_its_name() -> None:
    long = "a" * 57
    files = copied(B, f"{TENANT}/", ("payment-app", long), ("payment-dev", "long"), ("payment-processor", "long"))
    assert rules(files) == [("layout", f"{DEV}/tenants/{long}")]
    fits = long[1:]
    files = copied(B, f"{TENANT}/", ("payment-app", fits), ("payment-dev", "long"), ("payment-processor", "long"))
    assert rules(files) == []


def test_an_environment_is_a_word_too() -> None:
    files = {path.replace("prod/", "on/", 1): text for path, text in B.items()}
    files["fleet.yaml"] = (
        files["fleet.yaml"].replace("name: prod", 'name: "on"').replace("environment: prod", 'environment: "on"')
    )
    assert ("layout", "on") in rules(files)


def test_two_tenants_cannot_share_a_namespace() -> None:
    twin = copied(B, f"{TENANT}/", ("payment-app", "z-app"), ("payment-processor", "z"))
    assert rules(twin) == [("layout", f"{DEV}/tenants/z-app/namespace.yaml")]
    assert rules(copied(B, f"{TENANT}/", ("payment-app", "z-app"), ("payment-dev", "z-dev"), ("payment-processor", "z"))) == []


def test_two_clusters_of_the_fleet_cannot_share_a_name() -> None:
    files = copied(B, f"{STAGING}/", ("staging-use1-01", "dev-use1-01"), ("vault.dev", "vault.other"))
    assert ("layout", "staging/dev-use1-01") in rules(files)


# YAML


def test_bombs_and_bytes_that_are_no_text_are_findings() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    deep = "x: " + "[" * 70 + "]" * 70
    bodies: list[bytes] = [bomb.encode(), deep.encode(), b"x: \xff", b"x: 1\n" * 250_000, b"a: &a [*a]\n"]
    for body in bodies:
        found = lint({**B, INPUT: body})
        assert [(finding.rule, finding.path) for finding in found] == [("yaml", INPUT)], body[:20]


def test_a_file_without_documents_is_told() -> None:
    assert ("manifest", SYNC) in rules({**B, SYNC: "# nothing\n"})
    assert ("manifest", SYNC) in rules({**B, SYNC: "- a list\n"})


# What blueprints make


def release(old: str, new: str) -> Releases:
    return Releases(v1_0_0=with_edit(A, "apps/standard-service/resourceset.yaml", old, new))


def test_objects_are_judged_as_admission_would() -> None:
    faults = {
        "        image: << inputs.image | quote >>": "        image: nginx",
        "      serviceAccountName: tenant\n": "",
        "  resourcesTemplate: |\n": (
            "  resourcesTemplate: |\n    ---\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: x}\n"
            "    spec: {template: {spec: {containers: [{name: x, image: nginx:latest}]}}}\n"
        ),
    }  # fmt: skip
    for old, new in faults.items():
        found = rules(B, releases=release(old, new))
        assert set(found) == {("object-policy", INPUT.replace("dev", name)) for name in ("dev", "staging", "prod")}, new


def test_a_blueprint_that_does_not_render_is_found() -> None:
    found = lint(B, releases=release("<< inputs.logLevel | quote >>", "<< inputs.colour | quote >>"))
    assert {finding.rule for finding in found} == {"blueprint"}
    assert found[0].path == INPUT


def test_a_release_that_cannot_be_read_is_found_at_the_sync() -> None:
    broken = Releases(v1_0_0={**A, "apps/standard-service/inputs.schema.json": "{"})
    assert {rule for rule, _ in rules(B, releases=broken)} == {"blueprint"}


def test_base_is_judged_too() -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: y}\nspec: {containers: [{name: x, image: nginx}]}\n"
    path = f"{DEV}/base/pod.yaml"
    assert rules({**B, path: pod}) == [("object-policy", path)]
    (finding,) = lint({**B, path: pod.replace("nginx", "nginx:1.27")})
    assert (finding.rule, finding.severity) == ("image", findings.WARNING)
    assert rules({**B, path: pod.replace("nginx", f"nginx:1.27@{DIGEST}")}) == []
    binding = (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: x}\n"
        "roleRef: {kind: ClusterRole, name: cluster-admin, apiGroup: rbac.authorization.k8s.io}\n"
    )
    assert rules({**B, path: binding}) == [("object-policy", path)]
    admitted = with_edit(B, f"{DEV}/base/admission-cluster-admin.yaml", '"flux-operator"]', '"x"]')
    assert rules({**admitted, path: binding}) == []  # as admission lets it pass
    assert rules({**admitted, path: binding.replace("{name: x}", "{name: flux-operator}")}) == [("object-policy", path)]
    assert rules({**B, path: "apiVersion: external-secrets.io/v1beta1\nkind: ClusterSecretStore\nmetadata: {name: x}\n"}) == [
        ("manifest", path)
    ]


# Owners


def test_codeowners_is_what_the_policy_says() -> None:
    assert [(finding.rule, finding.line) for finding in lint(without(B, "CODEOWNERS"))] == [("codeowners", None)]
    assert rules(with_added(B, "CODEOWNERS", "/x @me\n")) == [("codeowners", "CODEOWNERS")]
    assert rules(with_edit(B, "fleet.yaml", "sre: [sre-1, sre-2, sre-3]", "sre: [sre-1, sre-2, sre-4]")) == [
        ("codeowners", "CODEOWNERS")
    ]
    assert rules({**B, "CODEOWNERS": B["CODEOWNERS"].replace("\n", "\r\n")}) == []
    assert rules({**B, ".github/CODEOWNERS": "* @me\n"}) == [("codeowners", ".github/CODEOWNERS")]


def test_a_symlink_in_the_place_of_codeowners_is_told_once() -> None:
    assert rules(without(B, "CODEOWNERS"), "CODEOWNERS") == [("layout", "CODEOWNERS")]


def test_findings_are_in_the_order_in_which_their_paths_are_printed() -> None:
    found = [findings.error("layout", path, None, "x") for path in ("b", "\udcff", "a")]
    printed = [finding.told()["path"] for finding in findings.ordered(found)]
    assert printed == sorted(printed) == ["\\udcff", "a", "b"]


def test_without_approvals_there_are_no_owners() -> None:
    policy = B["fleet.yaml"].partition("approvals:")[0]
    assert rules({**without(B, "CODEOWNERS"), "fleet.yaml": policy}) == []
