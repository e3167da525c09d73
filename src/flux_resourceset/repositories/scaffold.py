"""Both repositories, file by file, as `init` makes them, and what a new cluster or a new tenant adds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import flux_resourceset
from flux_resourceset.repositories import approvals, codeowners, scaffold_templates, yaml_scalars
from flux_resourceset.repositories.layout import Cluster, Tenant

Files = dict[str, str]  # texts by path

NAME = "acme"
ENVIRONMENTS = ("dev", "staging", "prod")
GITHUB, GITLAB = "github", "gitlab"
RELEASE = "v1.0.0"  # the tag that the blueprints begin with
SECRET_PATH = "secret/data/{tenant}/{environment}"  # noqa: S105  # where a tenant's secrets are, no secret

BLUEPRINT, TENANT, APPLICATION = "standard-service", "payment-app", "payment-processor"  # of the sample

_TEAMS = {"sre": ("sre-1", "sre-2", "sre-3"), "tech-leads": ("lead-1",)}
_STRICT = {"sre": 2, "tech-leads": 1}  # two of the platform team and a lead, for what the last environment runs
# The sample's images: the first environment is one release ahead. Nothing is behind these digests.
_AHEAD = "v2.1.0-rc1@sha256:3b1f0c9d5e7a24688c0f1d9b7a6e5c4d3f2b1a09e8d7c6b5a4f3e2d1c0b9a887"
_PROVED = "v2.0.0@sha256:9d4e1c23ab56f7088a1e5b6c7d8f90a1b2c3d4e5f60718293a4b5c6d7e8f9012"
_LOUD = "dev"  # where developers look at logs


class Sources(NamedTuple):
    """Where Flux finds the repositories."""

    fleet_config: str
    blueprints: str


class Store(NamedTuple):
    """Where the secrets of a cluster's tenants are kept, and how the cluster proves who it is."""

    server: str
    mount: str
    auth_mount: str


def repositories(name: str, environments: Sequence[str], ci: str, charts: str) -> dict[str, Files]:
    """All that `init` makes, by the names of the repositories."""
    return {
        blueprints_name(name): blueprints(name, charts, ci),
        fleet_config_name(name): fleet_config(name, environments, ci),
    }


def blueprints_name(name: str) -> str:
    return f"{name}-platform-blueprints"


def fleet_config_name(name: str) -> str:
    return f"{name}-fleet-config"


def default_charts(name: str) -> str:
    return f"oci://registry.{name}.com/charts"


def default_sources(name: str, ci: str) -> Sources:
    forge = f"https://{ci}.com/{name}"
    return Sources(f"{forge}/{fleet_config_name(name)}.git", f"{forge}/{blueprints_name(name)}.git")


def default_store(name: str, cluster: str) -> Store:
    """A Vault for each cluster: what two of them shared, one could read of the other."""
    return Store(f"https://vault.{cluster}.{name}.example:8200", "secret", "kubernetes")


# The repositories


def blueprints(name: str, charts: str, ci: str) -> Files:
    """The repository of blueprints."""
    values = {
        "NAME": name,
        "VERSION": flux_resourceset.__version__,
        "CHARTS": charts,
        "CHARTTYPE": "\n      type: oci" if charts.startswith("oci://") else "",
        "FORGESTEP": _FORGE_STEPS[ci],
    }
    return scaffold_templates.filled(("blueprints", f"blueprints-{ci}"), values)


def fleet_config(name: str, environments: Sequence[str], ci: str) -> Files:
    """The repository of fleet config, with a cluster in each environment and the sample's tenant in each cluster."""
    rules = _approvals(environments, ci)
    places = [Cluster(environment, f"{environment}-use1-01") for environment in environments]
    values = {
        "NAME": name,
        "VERSION": flux_resourceset.__version__,
        "FIRST": environments[0],
        "FIRSTCLUSTER": places[0].name,
        "ENVIRONMENTS": "\n".join(_environment_lines(environments)),
        "IMAGES": "".join(f"{line}\n" for line in _image_lines(name, environments)),
        "TEAMS": "\n".join(f"  {team}: [{', '.join(users)}]" for team, users in _TEAMS.items()),
        "PEOPLE": "\n".join(f"  {user}: [{user}@{name}.example]" for users in _TEAMS.values() for user in users),
        "BOTS": _BOTS[ci],
        "SOURCES": "\n".join(f"  - {yaml_scalars.written(url)}" for url in default_sources(name, ci)),
        "APPROVALS": "\n".join(map(_approval_line, rules)),
        "PROMOTION": f"fleet promote {TENANT} --to {environments[1]} --branch promote-payment\n" if environments[1:] else "",
        "FORGESTEP": _FORGE_STEPS[ci],
    }
    files = scaffold_templates.filled(("fleet", f"fleet-{ci}"), values)
    files["CODEOWNERS"] = codeowners.text(rules, _TEAMS)
    for place in places:
        files |= cluster(place, default_sources(name, ci), RELEASE)
        files |= _sample(name, place, environments)
    return dict(sorted(files.items()))


_FORGE_STEPS = {
    GITHUB: "Bring the rules of [.github/rulesets](.github/rulesets/README.md) to GitHub.",
    GITLAB: "Set in GitLab what the first lines of `.gitlab-ci.yml` ask for.",
}


_BOTS = {
    GITHUB: "bots: # addresses of programs that write commits; this one commits what is merged or edited on GitHub's pages\n"
    f"  - {approvals.WEB_FLOW}\n",
    GITLAB: "bots: [] # addresses of programs that write commits\n",
}


def _environment_lines(environments: Sequence[str]) -> list[str]:
    """Values of the last environment change by reviewed commits alone, unless there is no other environment."""
    last = len(environments) - 1
    only_git = [", inputs: [git]" if 0 < place == last else "" for place in range(len(environments))]
    return [f"  - {{name: {_flow(name)}{inputs}}}" for name, inputs in zip(environments, only_git, strict=True)]


def _image_lines(name: str, environments: Sequence[str]) -> list[str]:
    if len(environments) < 2:
        return []
    *_, before, last = map(_flow, environments)
    return [
        "images: # what the last environment takes has been in the one before, for a while, and is signed and tested",
        f"  - environment: {last}",
        "    field: image",
        f"    same_as: {before}",
        "    soak: 1h",
        f'    cosign: {{key: keys/cosign.pub, transparency_log: false, attestation: "https://{name}.example/tested"}}',
    ]


def _approvals(environments: Sequence[str], ci: str) -> list[dict[str, Any]]:
    """Who must agree to what; every path of the repository is under a rule, for one without is refused."""
    *earlier, last = environments
    free, reviewed = earlier[:1], earlier[1:]
    pipeline = ".github/**" if ci == GITHUB else ".gitlab-ci.yml"
    return [
        {"paths": ["*/*/base/**", "*/*/flux/**", "*/*/flux-instance.yaml"], "require": {"sre": 1}},
        *({"paths": [f"{name}/**"], "require": {}} for name in free),
        *({"paths": [f"{name}/**"], "require": {"sre": 1}} for name in reviewed),
        {"paths": [f"{last}/**", "fleet.yaml", "CODEOWNERS", "keys/**", "terraform/**", pipeline], "require": _STRICT},
        {"paths": ["README.md", ".gitignore", "docs/**"], "require": {"sre": 1}},
    ]


def _approval_line(rule: Mapping[str, Any]) -> str:
    paths = ", ".join(path if path.replace(".", "").isalpha() else json.dumps(path) for path in rule["paths"])
    require = ", ".join(f"{team}: {places}" for team, places in rule["require"].items())
    return f"  - {{paths: [{paths}], require: {{{require}}}}}"


def _flow(text: str) -> str:
    return yaml_scalars.written(text, flow=True)


def _sample(name: str, place: Cluster, environments: Sequence[str]) -> Files:
    is_first, is_last = place.environment == environments[0], place.environment == environments[-1]
    values = {
        "appName": APPLICATION,
        "image": f"registry.{name}.com/payment:{_AHEAD if is_first else _PROVED}",
        "replicas": 3 if is_last else 2,
        "logLevel": "DEBUG" if place.environment == _LOUD else "INFO",
        "environment": place.environment,
        "secretName": secret_name(TENANT),
    }
    namespace = f"payment-{place.environment}"
    return tenant(Tenant(*place, TENANT), namespace, BLUEPRINT, values, default_store(name, place.name))


# What is in them


def cluster(place: Cluster, sources: Sources, pin: str) -> Files:
    """A cluster without tenants: what Terraform applies, and what Flux keeps from then on."""
    values = {
        "ENVIRONMENT": place.environment,
        "CLUSTER": place.name,
        "FLEETURL": sources.fleet_config,
        "BLUEPRINTSURL": sources.blueprints,
        "PIN": pin,
    }
    return {place.path(path): text for path, text in scaffold_templates.filled(("cluster",), values).items()}


def tenant(
    place: Tenant, namespace: str, blueprint: str, values: Mapping[str, Any], store: Store, secret_path: str = SECRET_PATH
) -> Files:
    """A tenant whose inputs Git holds. Raises ValueError, in plain words, for an input that YAML cannot say."""
    path = secret_path.replace("{tenant}", place.name).replace("{environment}", place.environment)
    texts = {
        "ENVIRONMENT": place.environment,
        "TENANT": place.name,
        "NAMESPACE": namespace,
        "BLUEPRINT": blueprint,
        "VALUES": "\n".join(f"    {line}" if line else "" for line in yaml_scalars.lines(dict(values))),
        "SECRET": str(values.get("secretName") or secret_name(place.name)),
        "SECRETPATH": path,
        "VAULT": store.server,
        "MOUNT": store.mount,
        "AUTHMOUNT": store.auth_mount,
    }
    return {place.path(name): text for name, text in scaffold_templates.filled(("tenant",), texts).items()}


def secret_name(tenant: str) -> str:
    """The Secret that a blueprint is told of, if nobody says another."""
    return f"{tenant}-secrets"
