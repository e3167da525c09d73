"""Plans, and what every mutation takes and refuses for their sake."""

from __future__ import annotations

import copy
from typing import Any

from flux_resourceset import errors
from flux_resourceset.kinds.model import Schema
from flux_resourceset.openapi.building import refused
from flux_resourceset.openapi.words import array, members, ref, text

Operation = dict[str, Any]

_COUNT: Schema = {"type": "integer", "minimum": 0}
_WHOLE: Schema = {"type": "string", "pattern": "^[0-9]{1,15}$", "example": "12"}
_REVISION: Schema = {"type": "integer", "minimum": 0, "example": 12}
PLAN_ID = "5d41402abc4b2a76b9719d911017c592"  # an example

_QUERY: dict[str, tuple[str, str, Schema]] = {
    "DryRun": (
        "dry_run",
        "Write nothing, and answer with the plan; then full and cluster may be said as for /plan.",
        {"type": "boolean", "default": False},
    ),
    "PlanFull": ("full", "Of a plan: every group, with all of its clusters.", {"type": "boolean", "default": False}),
    "PlanCluster": ("cluster", "Of a plan: only the group of this cluster.", {"type": "string"}),
}
_HEADERS: dict[str, tuple[str, str, Schema]] = {
    "IfPlan": (
        "If-Plan",
        "Only if this is the plan; otherwise 412 `plan-changed`.",
        {"type": "string", "pattern": '^"?[0-9a-f]{32}"?$', "example": f'"{PLAN_ID}"'},
    ),
    "XConfirmRemovals": ("X-Confirm-Removals", "Confirms that exactly this number of inputs is removed.", _WHOLE),
    "XConfirmClusters": ("X-Confirm-Clusters", "Confirms that exactly this number of clusters gets other answers.", _WHOLE),
    "XOverrideFreeze": (
        "X-Override-Freeze",
        "Ids of the freezes to pass, separated by commas; needs X-Reason.",
        {"type": "string", "pattern": "^[a-z0-9, -]*$", "example": "year-end"},
    ),
}
_REFUSALS = (errors.BadRequest, errors.PreconditionFailed, errors.Invalid, errors.Frozen, errors.ConfirmationRequired)


def parameters() -> dict[str, Schema]:
    places = {"query": _QUERY, "header": _HEADERS}
    return {
        key: {"name": name, "in": place, "description": description, "schema": schema}
        for place, named in places.items()
        for key, (name, description, schema) in named.items()
    }


def planned(operation: Operation) -> None:
    """Make an operation one that can be planned, that agrees to a plan, and that guards may hold up."""
    named = [{"$ref": f"#/components/parameters/{name}"} for name in ("DryRun", *_HEADERS)]
    operation["parameters"] = [*operation.get("parameters", ()), *named]
    responses = operation["responses"]
    plan = {"description": "With dry_run: the plan.", "content": {"application/json": {"schema": ref("Plan")}}}
    done = copy.deepcopy(responses.get("200"))  # several operations may share it
    if done is None:
        responses["200"] = plan
    else:
        content = done["content"]["application/json"]
        done["description"] += " With dry_run: the plan."
        # the plan first: clients take the first that fits, and a plan has all that the answer to a batch has
        content["schema"] = {"anyOf": [ref("Plan"), content["schema"]]}
        if "ETag" in done.get("headers", {}):
            done["headers"]["ETag"] = {
                "description": "Names this state of the document; a plan has none.",
                "schema": {"type": "string"},
            }
        responses["200"] = done
    for refusal in _REFUSALS:
        responses.setdefault(str(refusal.status), refused(refusal))
    operation["responses"] = {status: responses[status] for status in sorted(responses)}


def schemas() -> dict[str, Schema]:
    return {
        "Plan": _plan(),
        "PlanSummary": members(
            {
                "documents": {**_COUNT, "description": "Documents that change."},
                "clusters": {**_COUNT, "description": "Clusters whose answers change."},
                "added": {**_COUNT, "description": "Inputs that come, or are switched on."},
                "removed": {**_COUNT, "description": "Inputs that go, or are switched off: Flux deletes what they stand for."},
                "changed": {**_COUNT, "description": "Inputs that become others."},
            }
        ),
        "PlanGroup": members(
            {
                "count": {**_COUNT, "minimum": 1, "description": "How many clusters."},
                "clusters": array({"type": "string"}, "Their ids; the first 20."),
                "environments": {
                    "type": "object",
                    "description": "How many of them are in which environment.",
                    "additionalProperties": {"type": "integer", "minimum": 1},
                },
                "changes": array(ref("InputChange"), "What changes in the answers of each of them."),
            }
        ),
        "InputChange": members(
            {
                "view": text("The view, as Flux polls it.", example="platform-components"),
                "input": text("Id of the input."),
                "change": {"type": "string", "enum": ["added", "removed", "changed"], "description": "What becomes of it."},
                "fields": array(ref("FieldChange"), "Of a changed one: where it differs."),
            },
            ["view", "input", "change"],
        ),
        "FieldChange": members(
            {
                "path": text("JSON pointer to the field.", example="/source/oci_tag"),
                "before": {"description": "The value before; absent if there was none."},
                "after": {"description": "The value after; absent if there is none."},
            },
            ["path"],
        ),
        "Guard": _guard(),
    }


def _plan() -> Schema:
    return members(
        {
            "plan": text("Id of the plan, for If-Plan.", pattern="^[0-9a-f]{32}$", example=PLAN_ID),
            "base_revision": {**_REVISION, "description": "Revision that it was worked out for."},
            "revision": {**_REVISION, "description": "Revision that it would make; the same if nothing changes."},
            "dry_run": {"type": "boolean", "enum": [True], "description": "That nothing was written."},
            "summary": ref("PlanSummary"),
            "groups": array(ref("PlanGroup"), "Clusters that change in the same way; the largest first, at most 100."),
            "groups_total": {**_COUNT, "description": "How many groups there are."},
            "guards": array(ref("Guard"), "What would hold up the write, and what has to be sent for it to pass."),
            "warnings": array({"type": "string"}, "Warnings about what is allowed but is probably a mistake."),
            "results": array(ref("BatchResult"), "What would become of each document that is touched."),
        }
    )


def _guard() -> Schema:
    guard = members(
        {
            "guard": {"type": "string", "enum": ["removals", "clusters", "freeze"], "description": "Which one."},
            "tripped": {"type": "boolean", "description": "Whether the write needs what `confirm` says."},
            "confirm": {
                "type": "object",
                "description": "The headers with which it passes.",
                "additionalProperties": {"type": "string"},
                "example": {"X-Confirm-Removals": "12"},
            },
        }
    )
    del guard["additionalProperties"]  # each has its numbers
    return guard
