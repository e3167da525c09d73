"""Where faults are planted, how many, and which tests are to notice them: quick ones first, then those that start servers."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from mutants import python_faults, template_faults
from mutants.fault import Fault

ROOT = Path(__file__).resolve().parent.parent.parent
VIEWS = "deploy/cluster/views"
BUNDLE = "src/flux_resourceset/bundle/views"  # the package's own copy of the views; both are changed alike


class Subject(NamedTuple):
    path: str
    share: int  # how many faults of those that can be made
    tests: tuple[tuple[str, ...], ...]  # stage by stage, each only for what the one before did not notice


def _of(path: str, share: int, *stages: str) -> Subject:
    return Subject(path, share, tuple(tuple(f"tests/{name}" for name in words.split()) for words in stages))


def _module(name: str, share: int, *stages: str) -> Subject:
    return _of(f"src/flux_resourceset/{name}.py", share, *stages)


def _view(name: str, share: int) -> Subject:
    return _of(f"{VIEWS}/{name}.yaml", share, "render/test_shipped_views.py", "render/test_bootstrap_command.py")


DRAFTING = (
    "unit/test_drafts.py unit/test_sub_resources.py unit/test_dependencies.py unit/test_transactions.py unit/test_limits.py"
)
ASKING = "api/test_documents.py api/test_sub_resources.py api/test_warnings.py api/test_bodies.py api/test_flux_answers.py"
ONE_PASS = "test_a_dense_catalog_is_searched_for_cycles_in_one_pass"
IN_TURN = "test_only_so_many_run_at_a_time_and_whoever_leaves_makes_room"
PAST = "contract/test_past_contract.py contract/test_log_contract.py property/test_store_machine.py"

SUBJECTS = (
    _module("merge", 20, "unit/test_merge.py property/test_merge_laws.py", "unit/test_usage.py"),
    _module("usage", 10, "unit/test_usage.py"),
    _module("kinds/extensions", 10, "unit/test_extensions.py"),
    _module("kinds/helm_paths", 10, "unit/test_helm_paths.py"),
    _module("answers", 15, "unit/test_merge.py property/test_merge_laws.py", "unit/test_fleet.py",
            "api/test_flux_answers.py"),
    _module("effects", 20, "unit/test_effects.py property/test_plan_laws.py", "api/test_plans.py"),
    _module("plans", 10, "unit/test_effects.py property/test_plan_laws.py", "api/test_plans.py"),
    _module("guards", 15, "unit/test_effects.py property/test_plan_laws.py", "api/test_guards.py"),
    _module("fleet", 30, "unit/test_fleet.py unit/test_limits.py unit/test_extensions.py", "property/test_fleet_coherence.py",
            "api/test_flux_answers.py api/test_readers.py", "unit/test_snapshots.py", "faults/test_kind_files.py"),
    _module("changes", 15, "unit/test_fleet.py unit/test_ledger.py unit/test_transactions.py", "property/test_fleet_coherence.py",
            "contract/test_store_contract.py contract/test_past_contract.py", "api/test_lists.py"),
    _module("overlay", 10, DRAFTING, "unit/test_transfer.py property/test_fleet_coherence.py"),
    _module("drafts", 25, DRAFTING, "unit/test_transfer.py property/test_fleet_coherence.py", ASKING),
    _module("cautions", 10, f"{DRAFTING} unit/test_risks.py", "unit/test_transfer.py", ASKING),
    _module("rules", 25, f"{DRAFTING} unit/test_patch_keys.py unit/test_helm_paths.py unit/test_risks.py",
            "unit/test_transfer.py property/test_fleet_coherence.py", ASKING,
            "faults/test_what_kubernetes_would_refuse.py", f"faults/test_dry_runs.py::{ONE_PASS}"),
    _module("ahead", 5, "unit/test_follower.py"),
    _module("follower", 15, "unit/test_follower.py unit/test_ledger.py unit/test_fleet.py",
            "unit/test_snapshots.py unit/test_lagging.py", "property/test_fleet_coherence.py",
            "api/test_readers.py", "faults/test_kind_files.py", "faults/test_restored_backups.py", "processes/test_sharing.py"),
    _module("ledger", 15, "unit/test_ledger.py unit/test_idempotency.py unit/test_follower.py",
            "property/test_fleet_coherence.py", "faults/test_kind_files.py", "processes/test_sharing.py",
            f"faults/test_dry_runs.py::{IN_TURN}", "unit/test_reference_cycles.py"),
    _module("undoing", 20, "unit/test_undoing.py"),
    _module("applying", 25, "unit/test_applying.py property/test_apply_table.py property/test_apply_laws.py",
            "unit/test_applications.py"),
    _module("applications", 15, "unit/test_applications.py", "api/test_apply.py"),
    _module("records", 8, "unit/test_applications.py", "api/test_apply.py"),
    _module("differences", 10, "unit/test_differences.py property/test_difference_laws.py"),
    _module("reverts", 10, "unit/test_reverts.py", "property/test_revert_laws.py", "api/test_reverts.py"),
    _module("provenance", 10, "api/test_provenance.py"),
    _module("http/poll", 20, "unit/test_poll.py", "api/test_flux_answers.py api/test_authentication.py api/test_service_paths.py",
            "api/test_readers.py", "api/test_listening.py", "api/test_fast_path.py"),
    _module("http/listening", 10, "unit/test_listening.py", "api/test_listening.py", "api/test_shutdown.py",
            "faults/test_half_close.py", "faults/test_lost_databases.py"),
    _module("store/deltas", 6, "property/test_delta_laws.py"),
    _module("store/sql_applied", 6, "contract/test_applied_contract.py contract/test_verification.py"),
    _module("store/sql_bodies", 10, "unit/test_kept_changes.py", PAST,
            "contract/test_sqlite_store.py contract/test_verification.py"),
    _module("store/sql_names", 6, PAST, "contract/test_store_contract.py contract/test_verification.py"),
    _module("store/sql_past", 6, PAST, "contract/test_verification.py"),
    _module("store/sql_verification", 10, "contract/test_verification.py"),
    _view("namespaces/resourceset", 8),
    _view("platform-components/resourceset", 25),
    _view("rolebindings/resourceset", 8),
    _view("namespaces/provider", 2),
    _view("platform-components/provider", 2),
    _view("rolebindings/provider", 2),
)  # fmt: skip


def possible(subject: Subject) -> list[Fault]:
    text = (ROOT / subject.path).read_text(encoding="utf-8")
    make = template_faults if subject.path.endswith(".yaml") else python_faults
    return list({fault.said: fault for fault in make.faults(subject.path, text)}.values())


def chosen(subject: Subject) -> list[Fault]:
    """Always the same ones, and when the file changes, mostly the same ones: those whose names hash lowest."""
    ranked = sorted(possible(subject), key=lambda fault: hashlib.sha256(fault.said.encode()).digest())
    return sorted(ranked[: subject.share], key=lambda fault: fault.start)
