"""The chart and the overlay on PostgreSQL: logins, readers on any node, and values that contradict each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import live

from .kube import Kube, Object
from .shipped import (
    DEPLOY,
    ON_POSTGRES,
    POSTGRES,
    PRODUCTION,
    assert_taken,
    built,
    helm_template,
    objects,
    one,
    pod_specs,
    rendered_with,
)

SERVERS = ("flux-api-read", "flux-api-crud")
CNPG_APP = {"postgres": {"existingSecret": "flux-api-db-app"}}  # as CloudNativePG makes it: the key uri has everything


def by_name(values: list[Object]) -> dict[str, Object]:
    return {each["name"]: each for each in values}


def environment(pod: Object) -> dict[str, Any]:
    (server,) = pod["spec"]["containers"]
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in server["env"]}


def mounts(pod: Object) -> dict[str, Object]:
    (server,) = pod["spec"]["containers"]
    return by_name(server["volumeMounts"])


def of_kind(found: list[Object], kind: str) -> dict[str, Object]:
    return {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == kind}


# Logging in


def test_the_secret_of_cloudnativepg_is_enough(tmp_path: Path) -> None:
    for pod in pod_specs(rendered_with(CNPG_APP, tmp_path)).values():
        found = environment(pod)
        assert found["STORE_BACKEND"] == "postgres"
        assert found["DATABASE_URL"] == {"secretKeyRef": {"name": "flux-api-db-app", "key": "uri"}}
        assert "DATABASE_PASSWORD_FILE" not in found
        assert "postgres" not in mounts(pod)


def test_a_password_is_a_mounted_file_that_changes_with_its_secret(tmp_path: Path) -> None:
    values = {**ON_POSTGRES, "backup": {"enabled": True}}
    logins = {"crud": ("flux_resourceset", "flux-api-db-app"), "read": ("flux_resourceset_reader", "flux-api-db-reader")}
    for name, pod in pod_specs(rendered_with(values, tmp_path)).items():
        role, secret = logins["crud" if name.endswith("-crud") else "read"]
        found = environment(pod)
        assert found["DATABASE_URL"] == f"postgresql://{role}@flux-api-db-rw.flux-system:5432/flux_resourceset"
        assert found["DATABASE_PASSWORD_FILE"] == "/postgres/password"
        assert mounts(pod)["postgres"] == {"name": "postgres", "mountPath": "/postgres", "readOnly": True}
        keys = [{"key": "password", "path": "password"}]
        volume = by_name(pod["spec"]["volumes"])["postgres"]["secret"]
        assert volume == {"secretName": secret, "defaultMode": 0o440, "items": keys}


def test_the_names_of_the_keys_can_be_chosen(tmp_path: Path) -> None:
    whole = pod_specs(rendered_with({"postgres": {"existingSecret": "mine", "urlKey": "DSN"}}, tmp_path))
    assert environment(whole["flux-api-read"])["DATABASE_URL"] == {"secretKeyRef": {"name": "mine", "key": "DSN"}}
    postgres = {"existingSecret": "mine", "url": "postgresql://me@db/fleet", "passwordKey": "PGPASSWORD"}
    parts = pod_specs(rendered_with({"postgres": postgres}, tmp_path))
    items = by_name(parts["flux-api-crud"]["spec"]["volumes"])["postgres"]["secret"]["items"]
    assert items == [{"key": "PGPASSWORD", "path": "password"}]


def test_readers_log_in_as_the_writers_do_unless_they_have_a_login_of_their_own(tmp_path: Path) -> None:
    postgres = {"existingSecret": "mine", "readers": {"existingSecret": "theirs"}}
    found = pod_specs(rendered_with({"postgres": postgres, "backup": {"enabled": True}}, tmp_path))
    secrets = {name: environment(pod)["DATABASE_URL"]["secretKeyRef"]["name"] for name, pod in found.items()}
    assert secrets == {"flux-api-crud": "mine", "flux-api-read": "theirs", "flux-api-backup": "theirs"}


def test_the_certificate_of_the_database_is_verified_with_the_authority_and_nothing_else_of_it(tmp_path: Path) -> None:
    for pod in pod_specs(rendered_with({**ON_POSTGRES, "backup": {"enabled": True}}, tmp_path)).values():
        found = environment(pod)
        assert (found["PGSSLMODE"], found["PGSSLROOTCERT"]) == ("verify-full", "/postgres-ca/ca.crt")
        items = by_name(pod["spec"]["volumes"])["postgres-ca"]["secret"]["items"]
        assert items == [{"key": "ca.crt", "path": "ca.crt"}]
    plain = pod_specs(rendered_with({"postgres": {"existingSecret": "mine", "tls": {"mode": "require"}}}, tmp_path))
    assert environment(plain["flux-api-read"])["PGSSLMODE"] == "require"
    assert "PGSSLROOTCERT" not in environment(plain["flux-api-read"])


def test_only_the_writers_of_a_first_installation_may_begin_a_fleet(tmp_path: Path) -> None:
    for first, expected in ((False, {None}), (True, {"rwc", None})):
        found = pod_specs(rendered_with({"postgres": {"existingSecret": "mine", "firstInstallation": first}}, tmp_path))
        modes = {name: environment(found[name]).get("DATABASE_MODE") for name in SERVERS}
        assert (set(modes.values()), modes["flux-api-read"]) == (expected, None)


# Readers and writers


def test_on_postgresql_nothing_ties_a_pod_to_a_node(tmp_path: Path) -> None:
    found = rendered_with({**ON_POSTGRES, "backup": {"enabled": True}}, tmp_path)
    assert {each["metadata"]["name"] for each in found if each["kind"] == "PersistentVolumeClaim"} == {"flux-api-backup"}
    for name, pod in pod_specs(found).items():
        assert "affinity" not in pod["spec"]
        assert "data" not in by_name(pod["spec"]["volumes"])
        if name in SERVERS:
            spread = pod["spec"]["topologySpreadConstraints"]
            assert [each["topologyKey"] for each in spread] == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
            assert {each["whenUnsatisfiable"] for each in spread} == {"ScheduleAnyway"}
            assert all(each["labelSelector"] == {"matchLabels": {"app": name}} for each in spread)
    own: Object = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    chosen = pod_specs(rendered_with({**CNPG_APP, "affinity": own, "topologySpread": "DoNotSchedule"}, tmp_path))
    assert chosen["flux-api-read"]["spec"]["affinity"] == own
    assert chosen["flux-api-read"]["spec"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] == "DoNotSchedule"


def test_writers_are_two_and_replaced_without_a_gap_and_on_sqlite_one(tmp_path: Path) -> None:
    assert of_kind(helm_template(), "Deployment")["flux-api-crud"]["replicas"] == 1
    found = rendered_with(CNPG_APP, tmp_path)
    crud = of_kind(found, "Deployment")["flux-api-crud"]
    assert (crud["replicas"], crud["strategy"]["type"], crud["strategy"]["rollingUpdate"]["maxUnavailable"]) == (
        2,
        "RollingUpdate",
        0,
    )
    assert of_kind(found, "PodDisruptionBudget").keys() == set(SERVERS)
    assert of_kind(rendered_with({**CNPG_APP, "crud": {"replicas": 3}}, tmp_path), "Deployment")["flux-api-crud"]["replicas"] == 3


def test_readers_are_scaled_by_an_autoscaler_or_have_a_number(tmp_path: Path) -> None:
    scaled = rendered_with(ON_POSTGRES, tmp_path)
    reader = of_kind(scaled, "Deployment")["flux-api-read"]
    assert "replicas" not in reader, "the autoscaler and the chart would each set it"
    scaler = of_kind(scaled, "HorizontalPodAutoscaler")["flux-api-read"]
    assert scaler["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "flux-api-read"}
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 6)
    fixed = rendered_with({**CNPG_APP, "read": {"replicas": 4}}, tmp_path)
    assert of_kind(fixed, "Deployment")["flux-api-read"]["replicas"] == 4
    assert of_kind(fixed, "HorizontalPodAutoscaler") == {}


def test_every_server_keeps_its_last_good_state_and_says_how_old_it_may_be(tmp_path: Path) -> None:
    values = {"postgres": {"existingSecret": "mine", "maxStaleness": 3600, "snapshotSize": "3Gi"}, "read": {"workers": 2}}
    found = pod_specs(rendered_with(values, tmp_path))
    for name in SERVERS:
        env = environment(found[name])
        assert (env["SNAPSHOT_FILE"], env["MAX_STALENESS"]) == ("/snapshot/fleet", "3600")
        assert mounts(found[name])["snapshot"] == {"name": "snapshot", "mountPath": "/snapshot"}
        assert by_name(found[name]["spec"]["volumes"])["snapshot"] == {"name": "snapshot", "emptyDir": {"sizeLimit": "3Gi"}}
        assert env["WORKERS"] == ("2" if name == "flux-api-read" else "1")
    on_sqlite = environment(pod_specs(helm_template())["flux-api-read"])
    assert not {"SNAPSHOT_FILE", "MAX_STALENESS"} & on_sqlite.keys()


def test_pods_may_call_name_servers_and_the_database_and_on_sqlite_nobody(tmp_path: Path) -> None:
    for policy in of_kind(helm_template("--set", "backup.enabled=true"), "NetworkPolicy").values():
        assert (policy["egress"], "Egress" in policy["policyTypes"]) == ([], True)
    found = of_kind(rendered_with({**ON_POSTGRES, "backup": {"enabled": True}}, tmp_path), "NetworkPolicy")
    assert found.keys() == {*SERVERS, "flux-api-backup"}
    for policy in found.values():
        names, database = policy["egress"]
        assert {(each["port"], each["protocol"]) for each in names["ports"]} == {(53, "UDP"), (53, "TCP")}
        assert database == {
            "ports": [{"port": 5432}], "to": [{"podSelector": {"matchLabels": {"cnpg.io/cluster": "flux-api-db"}}}],
        }  # fmt: skip
    for name in SERVERS:
        assert one(POSTGRES, "NetworkPolicy", name)["spec"]["egress"] == found[name]["egress"]


# Values that contradict each other


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("crud.replicas=2", "crud.replicas is more than 1 on SQLite"),
        ("read.autoscaling.enabled=true", "read.autoscaling needs PostgreSQL"),
        ("postgres.firstInstallation=true", "postgres.firstInstallation and postgres.maxStaleness are for PostgreSQL"),
        ("topologySpread=DoNotSchedule", "topologySpread=DoNotSchedule needs PostgreSQL"),
        ("postgres.readers.existingSecret=a", "readers and writers would have different databases"),
        ("postgres.maxStaleness=60", "are for PostgreSQL"),
        ("postgres.tls.caSecret=a", "are for PostgreSQL"),
        ("postgres.existingSecret=a,storage.existingClaim=b", "leave one of them empty"),
        ("postgres.url=postgresql://me:secret@db/fleet", "postgres.url contains a password"),
        ("postgres.url=postgresql://me@db/fleet?password=secret", "postgres.url contains a password"),
        ("postgres.existingSecret=a,postgres.readers.url=postgresql://me:secret@db/fleet", "postgres.readers.url contains a"),
        (
            "postgres.existingSecret=a,read.autoscaling.enabled=true,read.autoscaling.maxReplicas=1",
            "maxReplicas is less than",
        ),
        ("env.WORKERS=2", "WORKERS"),
        ("env.SNAPSHOT_FILE=x", "SNAPSHOT_FILE"),
        ("postgres.url=mysql://db", "url"),
    ],
)
def test_values_that_contradict_each_other_are_refused_with_the_remedy(values: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said) as refused:
        helm_template("--set", values)
    assert "secret@" not in str(refused.value).replace(values, "")


def test_an_address_without_a_password_is_no_contradiction(tmp_path: Path) -> None:
    url = "postgresql://me@[::1]:5432,db:5433/fleet?sslmode=require&target_session_attrs=read-write"
    found = pod_specs(rendered_with({"postgres": {"url": url}}, tmp_path))
    env = environment(found["flux-api-crud"])
    assert (env["DATABASE_URL"], "DATABASE_PASSWORD_FILE" in env) == (url, False)


# The overlay and the sample belong together


def test_the_sample_makes_what_the_overlay_asks_for() -> None:
    cluster, secret, _ = objects((DEPLOY / "server/samples/cloudnativepg.yaml").read_text())
    name, database = cluster["metadata"]["name"], cluster["spec"]["bootstrap"]["initdb"]
    (role,) = cluster["spec"]["managed"]["roles"]
    assert role["passwordSecret"]["name"] == secret["metadata"]["name"]
    made = {f"{name}-app": {"password", "uri"}, f"{name}-ca": {"ca.crt"}, secret["metadata"]["name"]: set(secret["stringData"])}
    roles = {"flux-api-crud": database["owner"], "flux-api-read": role["name"]}
    for server, user in roles.items():
        pod = one(POSTGRES, "Deployment", server)["spec"]["template"]
        url = environment(pod)["DATABASE_URL"]
        assert url == f"postgresql://{user}@{name}-rw.{cluster['metadata']['namespace']}:5432/{database['database']}"
        for volume in (each["secret"] for each in pod["spec"]["volumes"] if "secret" in each):
            assert {each["key"] for each in volume["items"]} <= made[volume["secretName"]]
    assert cluster["spec"]["postgresql"]["synchronous"]["dataDurability"] == "required"
    assert not any(each["kind"] == "PersistentVolumeClaim" for each in built(POSTGRES))


def test_the_job_that_moves_a_fleet_knows_both_of_its_homes() -> None:
    (job,) = objects((DEPLOY / "server/samples/move-to-postgresql.yaml").read_text())
    pod = job["spec"]["template"]["spec"]
    (copy,) = pod["containers"]
    assert copy["args"] == [
        "copy-store",
        environment(one(PRODUCTION, "Deployment", "flux-api-read")["spec"]["template"])["DATABASE_URL"],
        environment(one(POSTGRES, "Deployment", "flux-api-crud")["spec"]["template"])["DATABASE_URL"],
    ]
    writer = one(POSTGRES, "Deployment", "flux-api-crud")["spec"]["template"]["spec"]
    for name in ("postgres", "postgres-ca"):
        assert by_name(pod["volumes"])[name] == by_name(writer["volumes"])[name]
    assert by_name(pod["volumes"])["data"]["persistentVolumeClaim"]["claimName"] == "flux-api-data"
    assert pod["securityContext"] == writer["securityContext"]


def test_the_values_of_the_page_are_taken(checked: Kube, tmp_path: Path) -> None:
    page = (live.ROOT / "docs/postgresql.md").read_text()
    (shown,) = re.findall(r"^```yaml\n(# values\.yaml\n.*?)^```$", page, re.DOTALL | re.MULTILINE)
    found = rendered_with(yaml.safe_load(shown), tmp_path)
    assert_taken(checked, found)
    assert of_kind(found, "HorizontalPodAutoscaler")["flux-api-read"]["minReplicas"] == 3
    assert {environment(pod)["STORE_BACKEND"] for pod in pod_specs(found).values()} == {"postgres"}
