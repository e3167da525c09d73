"""Inputs of tenants between Git and the API: how they become a definition and its references, and where both sides differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from flux_resourceset.differences import ABSENT, same
from flux_resourceset.repositories import layout, tenants, yaml_scalars
from flux_resourceset.repositories.blueprints import RESERVED
from flux_resourceset.repositories.policy import Policy

Values = dict[str, Any]

MOST_INPUTS = 10_000  # that a provider takes; its own default of 100 cuts a list in silence, and what is cut off is deleted
STORE = "cluster-vault"  # the SecretStore that every tenant has
_VAULT_PATH = "secret/data/{tenant}/{environment}"  # where the policy names none


# A definition and its references


class Split(NamedTuple):
    definition: Values
    references: dict[str, Values]  # by cluster; of all that have one, or get one


def split(selected: Mapping[str, Values], definition: Mapping[str, Any], references: Mapping[str, Mapping[str, Any]]) -> Split:
    """What the API must hold so that each of the selected clusters has its values, and any other what it has now.

    `selected` are the values by cluster, in the order in which ties are decided; `definition` and `references` what the API
    holds, references by cluster. The definition gets what most of the selected have. A field that any cluster lacks stays out
    of it, for a reference can say another value, and not that there is none.
    """
    before = without_nulls(definition)
    said = {cluster: without_nulls(reference) for cluster, reference in references.items()}
    others = {cluster: {**before, **own} for cluster, own in said.items() if cluster not in selected}
    everywhere = [*selected.values(), *others.values()]
    names = dict.fromkeys(name for values in (before, *selected.values()) for name in values)
    made = {
        name: _most([values[name] for values in selected.values()]) for name in names if all(name in each for each in everywhere)
    }
    kept = {cluster: {**said[cluster], **_beyond(made, values, said[cluster])} for cluster, values in others.items()}
    return Split(made, kept | {cluster: _beyond(made, values) for cluster, values in selected.items()})


def _beyond(definition: Values, values: Values, said: Iterable[str] = ()) -> Values:
    """What a reference must say for its cluster to have these values, where it does not say them already."""
    return {name: value for name, value in values.items() if name not in said and not same(definition.get(name, ABSENT), value)}


def _most(values: Sequence[Any]) -> Any:
    """The value that is there most often; of several, the first."""
    counted: dict[str, int] = {}
    for value in values:
        counted[_key(value)] = counted.get(_key(value), 0) + 1
    return max(values, key=lambda value: counted[_key(value)])  # which takes the first of the greatest


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def without_nulls(value: Any) -> Any:
    """As Flux gets it from the API: a null is as good as nothing."""
    if isinstance(value, Mapping):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value if item is not None] if isinstance(value, list) else value


def nulls(values: Mapping[str, Any]) -> list[str]:
    """The inputs that are null, or hold one: the API cannot hold them."""
    return [name for name, value in values.items() if value is None or not same(without_nulls(value), value)]


def operations(
    kind: str, id: str, definition: Mapping[str, Any] | None, references: Mapping[str, Any], wanted: Split
) -> list[Values]:
    """What a batch has to do for it; nothing where it is so already. `definition` and `references` are what the API holds."""
    found: list[Values] = []
    if definition is None or not same(without_nulls(definition), wanted.definition):
        verb = "create" if definition is None else "replace"
        found.append({"op": verb, "kind": kind, "id": id, "document": {"id": id, **wanted.definition}})
    alike: dict[str, tuple[Values, list[str]]] = {}  # clusters that get the same, for the sake of short batches
    for cluster, reference in wanted.references.items():
        patch = merge_patch(without_nulls(references.get(cluster, {})), reference)
        if patch or cluster not in references:
            alike.setdefault(_key(patch), (patch, []))[1].append(cluster)
    return found + [
        {"op": "assign", "kind": kind, "id": id, "document": patch, "clusters": clusters} for patch, clusters in alike.values()
    ]


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Values:
    """The JSON merge patch (RFC 7396) that makes one of the other; `after` holds no null."""
    patch: Values = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name, ABSENT)
        if not same(old, value):
            patch[name] = merge_patch(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return patch


# Both sides


class Difference(NamedTuple):
    field: str
    git: Any  # None where there is none
    api: Any


def inputs(answer: Mapping[str, Any]) -> Values:
    """The inputs of a tenant among what the API gives to Flux; numbers as Git has them."""
    return {name: yaml_scalars.as_read(value) for name, value in answer.items() if name not in RESERVED}


def differing(git: Mapping[str, Any], api: Mapping[str, Any]) -> list[Difference]:
    """Field by field, in Git's order; then what only the API has."""
    return [
        Difference(name, git.get(name), api.get(name))
        for name in dict.fromkeys([*git, *api])
        if not same(git.get(name, ABSENT), api.get(name, ABSENT))
    ]


# Providers


def external(policy: Policy, dns: str, view: str, tenant: str) -> Values:
    """The spec of a provider that asks the API for the inputs of one tenant; with api.url in the policy."""
    url = str(policy.api_url)
    spec: Values = {
        "type": tenants.EXTERNAL,
        "url": f"{url}/api/v2/flux/clusters/{dns}/{view}/{tenant}",
        "secretRef": {"name": policy.api_secret},
        "filter": {"limit": MOST_INPUTS},
    }
    return {**spec, "insecure": True} if url.startswith("http://") else spec


def static(values: Mapping[str, Any], signature: Mapping[str, Any]) -> Values:
    """The spec of a provider that holds the inputs itself, in the order of the signature."""
    known = [name for name in signature.get("properties") or {} if name in values]
    return {"type": tenants.STATIC, "defaultValues": {name: values[name] for name in dict.fromkeys([*known, *values])}}


def token_secret(policy: Policy, tenant: layout.Tenant, namespace: str, name: str) -> Values:
    """The ExternalSecret for the token that the provider needs; at the path of the tenant, for its account may read no other."""
    path = policy.secret_path or _VAULT_PATH
    for word, value in (("{tenant}", tenant.name), ("{environment}", tenant.environment)):
        path = path.replace(word, value)
    return {
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "refreshInterval": "1h",
            "secretStoreRef": {"kind": "SecretStore", "name": STORE},
            "target": {"name": name, "creationPolicy": "Owner"},
            "data": [{"secretKey": "token", "remoteRef": {"key": path, "property": name}}],
        },
    }
