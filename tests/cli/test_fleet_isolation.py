"""What a hostile repository could run: each attack names a program that leaves a mark, and no command of `fleet` runs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.fleets import INPUT, NAMES, Fleet, fleet, scaffold

__all__ = ["fleet", "scaffold"]

pytestmark = pytest.mark.long

DEV, STAGING = INPUT.format("dev"), INPUT.format("staging")
IMAGE = "registry.acme.com/payment:v9@sha256:" + "ab" * 32
SET = ("set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}")
APPROVALS = '{{"head": "{}", "author": "dev-1", "reviews": []}}'
MISSING = "1" * 40
EVIL = "terraform/module"  # a place where a branch may have any files


class Trap(NamedTuple):
    """A program that leaves a mark, and the way to see it."""

    program: Path
    mark: Path

    @property
    def is_sprung(self) -> bool:
        found = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return found


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    program, mark = tmp_path / "program", tmp_path / "mark"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {mark}\nexit 1\n')
    program.chmod(0o755)
    return Trap(program, mark)


def config(trap: Trap, url: str, **others: str) -> str:
    """Git's configuration of a bare repository that lacks its objects, and fetches them by a program."""
    remote = "".join(f"\t{key} = {value}\n" for key, value in {"promisor": "true", "url": url, **others}.items())
    allowed = "".join(f'[protocol "{name}"]\n\tallow = always\n' for name in ("file", "ext", "ssh"))
    core = f"[core]\n\trepositoryformatversion = 1\n\tbare = true\n\tsshCommand = {trap.program}\n"
    return f'{core}[extensions]\n\tpartialClone = origin\n[remote "origin"]\n{remote}{allowed}'


def bare(trap: Trap, way: str) -> dict[str, str]:
    """The files of a repository without a work tree, which a branch can hold."""
    files = {"HEAD": "ref: refs/heads/main\n", "objects/keep": "", "refs/tags/v1.0.0": f"{MISSING}\n", "refs/keep": ""}
    match way:
        case "include":
            return {**files, "config": "[include]\n\tpath = other\n", "other": config(trap, ".", uploadpack=str(trap.program))}
        case "commondir":
            common = {f"common/{name}": body for name, body in files.items()}
            return {**files, **common, "commondir": "common\n", "common/config": config(trap, ".", uploadpack=str(trap.program))}
        case "ext":
            return {**files, "config": config(trap, f"ext::{trap.program}")}
        case "vcs":
            return {**files, "config": config(trap, str(trap.program), vcs="ext")}
        case "ssh":
            return {**files, "config": config(trap, "ssh://nowhere.example/x")}
    return {**files, "config": config(trap, ".", uploadpack=str(trap.program))}


def place(files: dict[str, str], folder: Path) -> None:
    for name, body in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(body)


WAYS = ["uploadpack", "include", "commondir", "ext", "vcs", "ssh"]


@pytest.fixture(params=WAYS)
def hostile(fleet: Fleet, trap: Trap, request: pytest.FixtureRequest) -> Fleet:
    """A branch with such a repository among its files, checked out as a reviewer does it: by cloning."""
    fleet.git("checkout", "-q", "-b", "change")
    place(bare(trap, request.param), fleet.root / EVIL)
    fleet.edit("fleet.yaml", "../acme-platform-blueprints", EVIL)
    fleet.edit(DEV, "logLevel: ", "logLevel:  ")
    fleet.commit("change")
    shutil.move(fleet.root, fleet.folder / "origin")
    fleet.git("clone", "-q", "-b", "change", str(fleet.folder / "origin"), str(fleet.root), at=fleet.folder)
    return fleet


def try_plain_git(fleet: Fleet, *words: str, at: Path) -> None:
    """Run git as a person would, who may get an error."""
    fleet.cli.shell(f"git -C '{at}' {' '.join(words)} || :")


def test_a_repository_among_the_files_of_a_branch_runs_no_program(hostile: Fleet, trap: Trap) -> None:
    shutil.copytree(hostile.root / EVIL, hostile.folder / "copy")
    try_plain_git(hostile, "rev-parse", "'v1.0.0^{commit}'", at=hostile.folder / "copy")
    assert trap.is_sprung, "the attack must work against git itself"
    for words in (
        ("lint",), ("lint", "--base", "HEAD~1"), ("lint", "--at", "HEAD"), ("render",), ("diff", "--from", "HEAD~1"), SET,
        (*SET, "--commit"), (*SET, "--branch", "b"), ("promote", "payment-app", "--to", "staging"),
        ("promote", "--blueprints", "--to", "staging"), ("kind", "standard-service"),
        ("new-tenant", "x", "--cluster", "dev-use1-01", "--blueprint", "standard-service"),
    ):  # fmt: skip
        (line,) = hostile.refused(2, *words)
        assert "inside the repository of fleet config" in line
        assert not trap.is_sprung, words
    assert hostile.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    "checkout", [EVIL, f"./{EVIL}", f"x/../{EVIL}", f"../acme-fleet-config/{EVIL}", "link", ".", "..", ".git"]
)
def test_blueprints_inside_the_tree_are_refused(fleet: Fleet, trap: Trap, checkout: str) -> None:
    place(bare(trap, "uploadpack"), fleet.root / EVIL)
    (fleet.root / "x").mkdir()
    (fleet.root / "link").symlink_to(EVIL)
    fleet.git("clone", "-q", str(fleet.blueprints), "own", at=fleet.root)
    for place_given in (checkout, "own"):
        done = fleet("render", "--blueprints-dir", str(fleet.root / place_given))
        assert (done.code, done.out) == (2, "")
        fleet.edit("fleet.yaml", "../acme-platform-blueprints", place_given)
        done = fleet("render")
        assert (done.code, done.out) == (2, "")
        fleet.edit("fleet.yaml", place_given, "../acme-platform-blueprints")
    assert not trap.is_sprung


def test_blueprints_beside_a_root_below_the_top_are_inside_the_tree(fleet: Fleet) -> None:
    shutil.rmtree(fleet.root / ".git")
    fleet.git("init", "-q", at=fleet.folder)
    (line,) = fleet.refused(2, "render")
    assert "inside the repository of fleet config" in line


def test_a_link_that_leads_out_of_the_tree_is_followed(fleet: Fleet) -> None:
    (fleet.root / "blueprints").symlink_to(fleet.blueprints)
    fleet.edit("fleet.yaml", "../acme-platform-blueprints", "blueprints")
    assert fleet.ok("render", "-o", "json")


@pytest.mark.parametrize("way", WAYS)
def test_a_bare_repository_outside_of_the_tree_runs_no_program(fleet: Fleet, trap: Trap, way: str) -> None:
    """In the place where a person was told to put a checkout."""
    place(bare(trap, way), fleet.folder / "archive")
    for words in (("lint",), ("render",), ("promote", "--blueprints", "--to", "staging")):
        assert fleet.refused(2, *words, "--blueprints-dir", str(fleet.folder / "archive"))
    assert not trap.is_sprung


@pytest.mark.parametrize("way", WAYS)
def test_a_work_tree_that_lacks_objects_runs_no_program(fleet: Fleet, trap: Trap, way: str) -> None:
    """An archive of a repository, with its `.git` and a configuration."""
    files = bare(trap, way)
    files = {name: body.replace("bare = true", "bare = false") for name, body in files.items()}
    archive = fleet.folder / "archive"
    place(files, archive / ".git")
    try_plain_git(fleet, "rev-parse", "'v1.0.0^{commit}'", at=archive)
    assert trap.is_sprung
    for words in (("lint",), ("render",), ("promote", "--blueprints", "--to", "staging")):
        done = fleet(*words, "--blueprints-dir", str(archive))
        assert done.code in (2, 3, 4), done
    assert not trap.is_sprung


# The configuration of the repository itself


def every_command(fleet: Fleet) -> Iterator[tuple[str, ...]]:
    """Commands that run git in all the ways that there are."""
    yield from (("lint", "--base", "HEAD~1"), ("render", "--at", "HEAD"), ("diff", "--from", "HEAD~1"), ("diff",))
    yield from (("diff", "--from", "HEAD~1", "--to", "HEAD"), ("check-image", "--base", "HEAD~1"))
    (fleet.folder / "approvals.json").write_text(APPROVALS.format(fleet.git("rev-parse", "HEAD")))
    yield ("check-approvals", "--base", "HEAD~1", "--approvals", str(fleet.folder / "approvals.json"))
    yield (*SET, "--branch", "one")
    yield (*SET, "--commit")
    yield ("promote", "payment-app", "--to", "staging", "--commit")


def config_of(*settings: str) -> Callable[[Fleet, Trap], None]:
    """A setting each, as `key=value`, where PROGRAM is the trap."""

    def prepare(fleet: Fleet, trap: Trap) -> None:
        for setting in settings:
            key, _, value = setting.partition("=")
            fleet.git("config", key, value.replace("PROGRAM", str(trap.program)))

    return prepare


def attributes_of(driver: str, *settings: str) -> Callable[[Fleet, Trap], None]:
    def prepare(fleet: Fleet, trap: Trap) -> None:
        fleet.write(".gitattributes", f"* {driver}\n")
        config_of(*settings)(fleet, trap)

    return prepare


def included(fleet: Fleet, trap: Trap) -> None:
    (fleet.root / ".git/other").write_text(
        f"[core]\n\tfsmonitor = {trap.program}\n\thooksPath = {trap.program.parent / 'hooks'}\n"
    )
    fleet.git("config", "include.path", "other")


def of_worktree(fleet: Fleet, trap: Trap) -> None:
    fleet.git("config", "extensions.worktreeConfig", "true")
    fleet.git("config", "--worktree", "core.fsmonitor", str(trap.program))


def in_a_linked_worktree(fleet: Fleet, trap: Trap) -> None:
    fleet.git("worktree", "add", "-q", "-b", "linked", str(fleet.folder / "linked"))
    config_of("core.fsmonitor=PROGRAM")(fleet, trap)
    fleet.root = fleet.folder / "linked"


def hooks(fleet: Fleet, trap: Trap) -> None:
    (fleet.root / ".git/hooks").mkdir()
    for name in ("reference-transaction", "post-index-change", "pre-commit", "post-commit", "commit-msg", "pre-auto-gc"):
        shutil.copy(trap.program, fleet.root / ".git/hooks" / name)


def hooks_elsewhere(fleet: Fleet, trap: Trap) -> None:
    folder = fleet.folder / "hooks"
    folder.mkdir()
    for name in ("reference-transaction", "post-index-change"):
        shutil.copy(trap.program, folder / name)
    fleet.git("config", "core.hooksPath", str(folder))


def submodule(fleet: Fleet, trap: Trap) -> None:
    """A repository inside, whose own configuration names a program."""
    fleet.git("clone", "-q", str(fleet.blueprints), "terraform/inner", at=fleet.root)
    fleet.git("-c", "advice.addEmbeddedRepo=false", "add", "terraform/inner")
    fleet.git("commit", "-q", "-m", "submodule")
    fleet.git("config", "core.fsmonitor", str(trap.program), at=fleet.root / "terraform/inner")


ATTACKS: dict[str, tuple[Callable[[Fleet, Trap], None], str | None]] = {
    # name: how it is prepared, and the words by which git itself falls for it
    "fsmonitor": (config_of("core.fsmonitor=PROGRAM"), "status"),
    "include": (included, "status"),
    "worktree config": (of_worktree, "status"),
    "linked worktree": (in_a_linked_worktree, "status"),
    "hooks": (hooks, "update-ref refs/heads/x HEAD"),
    "hooksPath": (hooks_elsewhere, "update-ref refs/heads/x HEAD"),
    "clean": (attributes_of("filter=x", "filter.x.clean=PROGRAM"), "hash-object fleet.yaml"),
    "required clean": (attributes_of("filter=x", "filter.x.clean=PROGRAM", "filter.x.required=true"), "hash-object fleet.yaml"),
    "smudge": (attributes_of("filter=x", "filter.x.smudge=PROGRAM"), "cat-file --filters HEAD:fleet.yaml"),
    "process": (attributes_of("filter=x", "filter.x.process=PROGRAM"), "hash-object fleet.yaml"),
    "filter with dots": (attributes_of("filter=a.b", "filter.a.b.clean=PROGRAM"), "hash-object fleet.yaml"),
    "external diff": (config_of("diff.external=PROGRAM"), "diff HEAD~1"),
    "diff driver": (attributes_of("diff=x", "diff.x.command=PROGRAM"), "diff HEAD~1"),
    "textconv": (attributes_of("diff=x", "diff.x.textconv=PROGRAM"), "diff HEAD~1"),
    "merge driver": (attributes_of("merge=x", "merge.x.driver=PROGRAM"), None),
    "submodule": (submodule, "status"),
    "pager": (config_of("core.pager=PROGRAM", "pager.log=PROGRAM", "pager.diff=PROGRAM"), None),
    "editor": (config_of("core.editor=PROGRAM", "sequence.editor=PROGRAM"), None),
    "alias": (config_of("alias.diff=!PROGRAM", "alias.log=!PROGRAM", "alias.status=!PROGRAM"), None),
    "trailer": (config_of("trailer.fleet-removes.command=PROGRAM", "trailer.x.cmd=PROGRAM"), None),
    "shown signatures": (config_of("log.showSignature=true", "gpg.program=PROGRAM"), None),
    "alternate refs": (config_of("core.alternateRefsCommand=PROGRAM"), None),
    "askpass": (config_of("core.askPass=PROGRAM", "credential.helper=!PROGRAM"), None),
    "hooks of the configuration": (config_of("hook.x.event=reference-transaction", "hook.x.command=PROGRAM"), None),
    "gc": (config_of("gc.auto=1", "gc.recentObjectsHook=PROGRAM"), None),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_configuration_of_a_repository_names_no_program_that_is_run(fleet: Fleet, trap: Trap, attack: str) -> None:
    prepare, words = ATTACKS[attack]
    fleet.edit(DEV, "logLevel: ", "logLevel:  ")
    fleet.commit("change")
    prepare(fleet, trap)
    trap.mark.unlink(missing_ok=True)
    if words is not None:
        try_plain_git(fleet, words, at=fleet.root)
        assert trap.is_sprung, "the attack must work against git itself"
    for command in every_command(fleet):
        for file in (fleet.root / DEV, fleet.root / "fleet.yaml"):
            file.touch()  # git compares the content of a file that is newer than its index
        done = fleet(*command)
        assert not trap.is_sprung, command
        assert done.code in (0, 1, 3), (command, done)  # 3: lint finds the submodule


def test_a_filter_that_cannot_be_switched_off_is_refused(fleet: Fleet, trap: Trap) -> None:
    fleet.git("config", "filter.a=b.clean", str(trap.program))
    (line,) = fleet.refused(2, "diff")
    assert "filter 'a=b'" in line


def test_what_a_filter_changes_is_not_committed(fleet: Fleet) -> None:
    """The commit would hold in clear what the filter encrypts."""
    fleet.write(".gitattributes", f"{DEV} filter=secret\n")
    fleet.git("config", "filter.secret.clean", "tr a-z n-za-m")
    fleet.git("config", "filter.secret.smudge", "tr a-z n-za-m")
    head = fleet.commit("secret")
    assert fleet.git("status", "--porcelain") == ""
    for way in (("--commit",), ("--branch", "b")):
        done = fleet(*SET, *way)
        assert done.code in (3, 6), done
    assert (fleet.git("rev-parse", "HEAD"), fleet.git("status", "--porcelain")) == (head, "")


def test_ends_of_lines_that_git_converts_stay_converted(fleet: Fleet) -> None:
    fleet.git("config", "core.autocrlf", "true")
    (fleet.root / DEV).unlink()
    fleet.git("checkout", "-q", DEV)
    assert b"\r\n" in (fleet.root / DEV).read_bytes()
    fleet.ok(*SET, "--commit")
    assert fleet.git("show", "--format=", "--numstat").split() == ["1", "1", DEV]
    assert fleet.git("status", "--porcelain") == ""
    assert b"\r\n" in (fleet.root / DEV).read_bytes()


# Signatures


SIGNER = """#!/bin/sh
echo signed >> "$(dirname "$0")/signed"
cat > /dev/null
echo "[GNUPG:] SIG_CREATED " >&2
echo "-----BEGIN PGP SIGNATURE-----"
"""


@pytest.mark.parametrize("key", ["gpg.program", "gpg.openpgp.program"])
@pytest.mark.parametrize("own", ["gpg.program", "gpg.openpgp.program"])
def test_a_commit_is_signed_by_the_program_of_the_user(fleet: Fleet, trap: Trap, key: str, own: str) -> None:
    (fleet.folder / "signer").write_text(SIGNER)
    (fleet.folder / "signer").chmod(0o755)
    fleet.git("config", "-f", str(fleet.folder / "user"), key, str(fleet.folder / "signer"))
    fleet.git("config", "commit.gpgSign", "true")
    fleet.git("config", own, str(trap.program))
    fleet.cli = fleet.cli.but(GIT_CONFIG_GLOBAL=str(fleet.folder / "user"))
    for way in (("--branch", "b"), ("--commit",)):
        fleet.ok(*SET, *way)
    assert (fleet.folder / "signed").read_text() == "signed\nsigned\n"
    assert "BEGIN PGP SIGNATURE" in fleet.git("cat-file", "commit", "HEAD")
    assert not trap.is_sprung


@pytest.mark.parametrize(
    ("settings"),
    [("gpg.format=ssh", "gpg.ssh.program=PROGRAM", "user.signingKey=x"), ("gpg.format=ssh", "gpg.ssh.defaultKeyCommand=PROGRAM"),
     ("gpg.format=x509", "gpg.x509.program=PROGRAM"), ("gpg.program=PROGRAM",)],
)  # fmt: skip
def test_what_cannot_be_signed_is_not_committed(fleet: Fleet, trap: Trap, settings: tuple[str, ...]) -> None:
    head = fleet.git("rev-parse", "HEAD")
    config_of("commit.gpgSign=true", *settings)(fleet, trap)
    fleet.cli = fleet.cli.but(GNUPGHOME=str(fleet.folder))
    for way in (("--branch", "b"), ("--commit",)):
        assert "cannot commit" in fleet.refused(2, *SET, *way)[0]
    assert (fleet.git("rev-parse", "HEAD"), fleet.git("status", "--porcelain")) == (head, "")
    assert not trap.is_sprung


def test_a_wrong_value_of_commit_gpgsign_is_not_read_as_no(fleet: Fleet) -> None:
    fleet.git("config", "commit.gpgSign", "perhaps")
    assert fleet.refused(2, *SET, "--commit")
    assert fleet.git("log", "-1", "--format=%s") == "Begin with a sample"


# Other histories


def test_grafts_and_replacements_hide_no_commit_from_a_gate(fleet: Fleet) -> None:
    base = fleet.git("rev-parse", "HEAD")
    fleet.edit(DEV, "logLevel: ", "logLevel:  ")
    fleet.commit("by sre-1", GIT_AUTHOR_EMAIL="sre-1@acme.example")
    fleet.edit(DEV, "logLevel: ", "logLevel:  ")
    head = fleet.commit("by dev-1", GIT_AUTHOR_EMAIL="dev-1@acme.example")
    approvals = fleet.folder / "approvals.json"
    review = f'{{"user": "sre-1", "state": "approved", "commit": "{head}", "time": "2026-01-31T12:00:00Z"}}'
    approvals.write_text(APPROVALS.format(head).replace("[]", f"[{review}]"))
    words = ("check-approvals", "--base", base, "--approvals", str(approvals))
    before = fleet(*words).data
    assert [each["why"] for each in before["ignored"]] == ["author"]
    (fleet.root / ".git/info").mkdir(exist_ok=True)
    (fleet.root / ".git/info/grafts").write_text(f"{head} {base}\n")
    assert fleet.git("rev-list", "--count", f"{base}..{head}") == "1"
    assert fleet(*words).data == before
    (fleet.root / ".git/info/grafts").unlink()
    fleet.git("replace", "--graft", head, base)
    assert fleet.git("rev-list", "--count", f"{base}..{head}") == "1"
    assert fleet(*words).data == before


def test_a_clone_that_borrows_its_objects_is_read(fleet: Fleet) -> None:
    fleet.git("clone", "-q", "--shared", str(fleet.blueprints), str(fleet.folder / "shared"), at=fleet.folder)
    assert fleet.ok("render", "-o", "json", "--blueprints-dir", str(fleet.folder / "shared"))


@pytest.mark.parametrize("command", [("render",), ("lint",)])
def test_a_partial_clone_is_refused_with_the_remedy_and_fetches_nothing(fleet: Fleet, command: tuple[str, ...]) -> None:
    fleet.git("config", "uploadpack.allowFilter", "true", at=fleet.blueprints)
    url = f"file://{fleet.blueprints}"
    fleet.git("clone", "-q", "--no-checkout", "--filter=blob:none", url, str(fleet.folder / "partial"), at=fleet.folder)
    (line,) = fleet.refused(2, *command, "--blueprints-dir", str(fleet.folder / "partial"))
    assert "the clone may lack objects: use one that is not shallow, partial or damaged" in line
    missing = fleet.git("rev-list", "--objects", "--all", "--missing=print", at=fleet.folder / "partial")
    assert "?" in missing


def test_a_variable_that_hides_the_configuration_hides_no_filter_and_no_signature(fleet: Fleet, trap: Trap) -> None:
    """`git config` reads the file that GIT_CONFIG names, and no other command of git does."""
    fleet.edit(DEV, "logLevel: ", "logLevel:  ")
    fleet.commit("change")
    fleet.write(".gitattributes", "* filter=x\n")
    config_of("filter.x.clean=PROGRAM", "commit.gpgSign=true", "gpg.program=PROGRAM")(fleet, trap)
    fleet.cli = fleet.cli.but(GIT_CONFIG=os.devnull, GNUPGHOME=str(fleet.folder))
    (fleet.root / DEV).touch()
    fleet("diff", "--from", "HEAD~1")
    assert not trap.is_sprung
    assert "cannot commit" in fleet.refused(2, *SET, "--commit")[0]
    assert not trap.is_sprung


def test_variables_of_the_caller_run_nothing_either(fleet: Fleet, trap: Trap) -> None:
    names = ("GIT_EXTERNAL_DIFF", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_PAGER", "GIT_EDITOR", "GIT_ASKPASS", "GIT_PROXY_COMMAND")
    fleet.edit(DEV, "logLevel: ", "logLevel:  ")
    fleet.commit("change")
    fleet.cli = fleet.cli.but(**dict.fromkeys(names, str(trap.program)), **NAMES)
    for command in every_command(fleet):
        fleet(*command)
        assert not trap.is_sprung, command
