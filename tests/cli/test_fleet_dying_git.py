"""Git that dies, lies or is cut off at any of its runs: no command of `fleet` takes that for an answer."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.command import Done
from cli.fleets import INPUT, Fleet, fleet, scaffold
from cli.gated import V3, Gated, prepared, promoted

__all__ = ["fleet", "scaffold"]

pytestmark = pytest.mark.long

DEV, PIN = INPUT.format("dev"), "{0}/{0}-use1-01/flux/blueprints.yaml"
IMAGE = "registry.acme.com/payment:v9@sha256:" + "ab" * 32
SET = ("set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}")
REAL = shutil.which("git")
MOST = 60  # runs of git in one command

# Counts the runs of git, and does something else at one of them.
WRAPPER = """#!/bin/sh
count=1
until mkdir "$COUNT/$count" 2> /dev/null; do count=$((count + 1)); done
if [ $count = "$DIES_AT" ]; then
    {how}
fi
exec "{real}" "$@"
"""
OUT = '"{real}" "$@" > "$COUNT/out"'
NO_DIALOGUE = 'case "$*" in *cat-file*) kill -9 $$;; esac'  # git that answers one question after the other has no whole output
ENDS = {
    "killed": "kill -9 $$",
    "out of memory": "echo 'fatal: Out of memory, malloc failed' >&2; exit 128",
    "by a shell": "exit 137",
    "cut off": f'{NO_DIALOGUE}; {OUT}; head -c $(($(wc -c < "$COUNT/out") / 2)) "$COUNT/out"; kill -9 $$',
    "killed at its end": f'{NO_DIALOGUE}; {OUT}; cat "$COUNT/out"; kill -9 $$',
}

# Passes questions and answers of `git cat-file --batch`, and ends within one of the answers.
PROXY = """#!{python} -IS
import os, subprocess, sys
real, count, dies_at, how = "{real}", os.environ["COUNT"], int(os.environ["DIES_AT"]), os.environ["HOW"]
if "cat-file" not in sys.argv:
    os.execv(real, [real, *sys.argv[1:]])
process = subprocess.Popen([real, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for question in sys.stdin.buffer:
    number = 1
    while True:
        try:
            os.mkdir(f"{count}/{number}")
            break
        except FileExistsError:
            number += 1
    process.stdin.write(question)
    process.stdin.flush()
    answer = head = process.stdout.readline()
    if not head.endswith(b" missing\\n"):
        answer += process.stdout.read(int(head.split()[2]) + 1)
    if number == dies_at:
        if how == "missing":
            answer = question.strip() + b" missing\\n"
        elif how == "no answer":
            sys.exit(0)
        elif how == "half of the head":
            answer = head[: len(head) // 2]
        elif how == "head alone":
            answer = head
        elif how == "half of the body":
            answer = answer[: len(head) + (len(answer) - len(head)) // 2]
        elif how == "no end":
            answer = answer[:-1]
        elif how == "another object":
            answer = b"2" * 40 + answer[40:]
        elif how == "another type":
            words = head.split()
            answer = answer.replace(words[1], b"tree" if words[1] == b"blob" else b"blob", 1)
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    if number == dies_at and how != "missing" and not how.startswith("another"):
        sys.exit(0)
"""


class Bench:
    """Runs commands with a git that fails at a chosen place."""

    def __init__(self, tested: Fleet | Gated, template: str, how: str = "") -> None:
        folder = tested.folder / "failing"
        folder.mkdir(exist_ok=True)
        text = template.replace("{how}", how).replace("{real}", str(REAL)).replace("{python}", sys.executable)
        (folder / "git").write_text(text)
        (folder / "git").chmod(0o755)
        self._tested = tested
        self._count = folder / "count"
        path = f"{folder}{os.pathsep}{tested.cli.environment['PATH']}"
        self._cli = tested.cli.but(PATH=path, COUNT=str(self._count), HOW=how)

    def __call__(self, place: int, words: tuple[str, ...]) -> Done | None:
        """The end of a command whose git fails at its n-th run or answer; None if it has fewer."""
        shutil.rmtree(self._count, ignore_errors=True)
        self._count.mkdir()
        repository = ("--repo", str(self._tested.root)) if words[0] not in ("init", "lint-blueprints", "check-components") else ()
        done = self._cli.but(DIES_AT=str(place))("fleet", *words, *repository)
        if (self._count / str(place)).exists():
            return done
        assert done.code in (0, 1, 3), done
        return None

    def all(self, words: tuple[str, ...]) -> Iterator[tuple[int, Done]]:
        """Every place, one after the other; there is at least one."""
        for place in itertools.count(1):
            assert place < MOST
            done = self(place, words)
            if done is None:
                assert place > 1, "git must have been run"
                return
            yield place, done


def assert_refused(bench: Bench, words: tuple[str, ...]) -> None:
    for place, done in bench.all(words):
        assert done.code == 2, (place, done)
        assert done.lines, (place, done)


@pytest.fixture
def gated(tmp_path: Path) -> Gated:
    """A change that is refused: of an image that is not in staging, and without approval."""
    made = prepared(Gated(tmp_path))
    made.on("main")
    rules = [{"paths": ["**"], "require": {"sre": 1}}]
    made.policy(images=[{"environment": "prod", "same_as": "staging", "soak": "1h"}], approvals=rules, teams={"sre": ["sre-1"]})
    made.commit("policy", ago=60)
    made.branch("change")
    promoted(made, V3)
    (tmp_path / "approvals.json").write_text(f'{{"head": "{made.git("rev-parse", "HEAD")}", "author": "dev-1", "reviews": []}}')
    return made


def judging(folder: Path) -> dict[str, tuple[str, ...]]:
    return {
        "check-image": ("check-image", "--base", "main", "--head", "change"),
        "check-image --all": ("check-image", "--base", "main", "--all"),
        "check-approvals": ("check-approvals", "--base", "main", "--approvals", str(folder / "approvals.json")),
    }


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("gate", judging(Path()))
def test_a_gate_without_git_is_not_passed(gated: Gated, gate: str, how: str) -> None:
    words = judging(gated.folder)[gate]
    assert gated(*words).code == 3
    assert_refused(Bench(gated, WRAPPER, ENDS[how]), words)


# Prints a list without its last byte, and ends as if it had printed all of it.
CUT = """#!/bin/sh
case " $* " in
    *" {what} "*) "{real}" "$@" > "$COUNT/out"; touch "$COUNT/1"; head -c $(($(wc -c < "$COUNT/out") - 1)) "$COUNT/out"; exit 0;;
esac
exec "{real}" "$@"
"""


@pytest.mark.parametrize(
    ("gate", "what"),
    [("check-image", "diff"), ("check-image", "log"), ("check-approvals", "diff"), ("check-approvals", "log")],
)
def test_a_list_that_is_cut_off_is_not_a_shorter_list(gated: Gated, gate: str, what: str) -> None:
    if what == "log":
        promoted(gated)  # what is in staging, so that its history is asked for
        approvals = gated.folder / "approvals.json"
        approvals.write_text(f'{{"head": "{gated.git("rev-parse", "HEAD")}", "author": "dev-1", "reviews": []}}')
    done = Bench(gated, CUT.replace("{what}", what))(1, judging(gated.folder)[gate])
    assert done is not None, "the list must have been asked for"
    assert done.code == 2, done
    assert f"git {what} ended within its answer" in done.lines[0]


PLACES = (1, 2, 3, 5, 8, 13)
ANSWERS = [
    "no answer",
    "half of the head",
    "head alone",
    "half of the body",
    "no end",
    "missing",
    "another object",
    "another type",
]


@pytest.mark.parametrize("how", ANSWERS)
@pytest.mark.parametrize("gate", ["check-image", "check-approvals"])
def test_an_answer_about_a_file_that_is_not_complete_is_not_a_missing_file(gated: Gated, gate: str, how: str) -> None:
    bench = Bench(gated, PROXY, how)
    for place in PLACES:
        done = bench(place, judging(gated.folder)[gate])
        codes = (2, 3) if how == "another object" else (2,)  # the folder at the top is asked for by the commit, not by its own id
        assert done is None or done.code in codes, (place, done)


READING = {
    "lint": ("lint",),
    "lint --base": ("lint", "--base", "HEAD~1"),
    "lint --at": ("lint", "--at", "HEAD"),
    "diff": ("diff", "--from", "HEAD~1", "--engine", "builtin"),
    "diff of commits": ("diff", "--from", "HEAD~1", "--to", "HEAD", "--engine", "builtin"),
    "render --at": ("render", "--at", "HEAD", "--engine", "builtin"),
    "kind": ("kind", "standard-service"),
}


@pytest.mark.parametrize("how", ["killed", "cut off"])
@pytest.mark.parametrize("command", READING)
def test_a_command_that_reads_ends_with_an_error_where_git_does_not_answer(fleet: Fleet, command: str, how: str) -> None:
    fleet.edit(DEV, "logLevel: ", "logLevel:  ")
    fleet.commit()
    assert_refused(Bench(fleet, WRAPPER, ENDS[how]), READING[command])


@pytest.mark.parametrize("command", ["lint --at", "diff of commits"])
@pytest.mark.parametrize("how", ["no answer", "head alone", "missing"])
def test_a_command_that_reads_takes_only_complete_answers(fleet: Fleet, command: str, how: str) -> None:
    fleet.edit(DEV, "logLevel: ", "logLevel:  ")
    fleet.commit()
    bench = Bench(fleet, PROXY, how)
    for place in PLACES:
        done = bench(place, READING[command])
        assert done is None or done.code == 2, (place, done)


@pytest.mark.parametrize("how", ENDS)
def test_a_commit_is_made_as_a_whole_or_not_at_all(fleet: Fleet, how: str) -> None:
    head = fleet.git("rev-parse", "HEAD")
    for _, done in Bench(fleet, WRAPPER, ENDS[how]).all((*SET, "--commit")):
        assert done.code == 2, done
        assert (fleet.git("rev-parse", "HEAD"), fleet.git("status", "--porcelain")) == (head, ""), done
    assert fleet.changed() == [DEV]


@pytest.mark.parametrize("how", ENDS)
def test_a_branch_is_made_as_a_whole_or_not_at_all(fleet: Fleet, how: str) -> None:
    head = fleet.git("rev-parse", "HEAD")
    for _, done in Bench(fleet, WRAPPER, ENDS[how]).all((*SET, "--branch", "bump")):
        assert done.code == 2, done
        assert (fleet.git("rev-parse", "HEAD"), fleet.git("status", "--porcelain")) == (head, ""), done
        if fleet.git("branch", "--list", "bump"):
            assert fleet.changed("HEAD", "bump") == [DEV]
            fleet.git("branch", "-q", "-D", "bump")


@pytest.mark.parametrize("how", ["killed", "by a shell"])
def test_init_leaves_nothing_where_git_dies(tmp_path: Path, scaffold: Path, how: str) -> None:
    fleet = Fleet(tmp_path)
    for place, done in Bench(fleet, WRAPPER, ENDS[how]).all(("init", str(tmp_path / "made"), "--name", "x")):
        assert done.code == 2, (place, done)
        assert list((tmp_path / "made").iterdir()) == []
        shutil.rmtree(tmp_path / "made")


# Objects and files that cannot be read


def objects_of(fleet: Gated | Fleet, revision: str) -> list[str]:
    return [line.split()[0] for line in fleet.git("rev-list", "--objects", revision).splitlines()]


def test_an_object_that_is_missing_is_not_a_missing_file(gated: Gated) -> None:
    words = judging(gated.folder)["check-image"]
    store = gated.repository / ".git/objects"
    codes = set()
    for id in objects_of(gated, "change"):
        file = store / id[:2] / id[2:]
        file.rename(gated.folder / "object")
        done = gated(*words)
        codes.add(done.code)
        assert done.code in (2, 3, 4), done  # 3: the object does not matter; 4: a revision is not there
        if done.code == 2:
            assert done.out == ""
        (gated.folder / "object").rename(file)
    assert 2 in codes


def test_a_shallow_clone_is_not_judged(gated: Gated) -> None:
    url = f"file://{gated.repository}"
    shallow = gated.folder / "shallow"
    gated.git("clone", "-q", "--no-single-branch", "--depth", "1", "-b", "change", url, str(shallow))
    done = gated.cli("fleet", "check-image", "--base", "origin/main", "--repo", str(shallow))
    assert done.code in (2, 4), done


def test_a_repository_that_belongs_to_another_user_is_not_read_as_if_there_were_no_git(fleet: Fleet) -> None:
    """Git refuses it; without Git, files that it ignores would be linted, and those of a commit could not be asked for."""
    fleet.cli = fleet.cli.but(GIT_TEST_ASSUME_DIFFERENT_OWNER="1")
    for words in (("lint",), ("render",), SET):
        (line,) = fleet.refused(2, *words)
        assert "dubious ownership" in line


# What a gate says


def test_a_gate_says_what_it_checked_on_stderr_and_leaves_stdout_to_json(gated: Gated) -> None:
    promoted(gated, "registry.acme.com/payment:v2@sha256:" + "2" * 64)
    done = gated("check-image", "--base", "main")
    assert (done.code, len(done.data), done.err) == (0, 1, "checked 1 image: all passed\n")
    gated.on("main")
    done = gated("check-image", "--base", "main")
    nothing = "nothing had to be checked: the change brings no image to an environment with a rule in images\n"
    assert (done.code, done.data, done.err) == (0, [], nothing)
    gated.policy()
    gated.commit("no rules")
    done = gated("check-image", "--base", "main")
    assert (done.code, done.data) == (0, [])
    assert done.err == "nothing had to be checked: fleet.yaml of the base has no rule in images\n"


def test_lint_says_that_there_is_nothing_to_check(fleet: Fleet) -> None:
    for environment in ("dev", "staging", "prod"):
        shutil.rmtree(fleet.root / environment)
    done = fleet("lint")
    assert "nothing had to be checked: there is no cluster\n" in done.err
    shutil.rmtree(fleet.blueprints / "apps")
    (fleet.blueprints / "apps").mkdir()
    done = fleet.cli("fleet", "lint-blueprints", str(fleet.blueprints))
    assert (done.code, done.data, done.err) == (0, [], "no blueprint had to be checked: apps/ has none\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_cannot_be_read_is_not_a_missing_file(fleet: Fleet) -> None:
    (fleet.root / DEV).chmod(0)
    (line,) = fleet.refused(2, "lint")
    assert line == f"{fleet.root / DEV} cannot be read: Permission denied"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
@pytest.mark.parametrize("mode", [0, 0o444])
def test_a_folder_that_cannot_be_read_is_not_a_missing_folder(fleet: Fleet, mode: int) -> None:
    for path in (Path(DEV).parent, Path(DEV).parent.parent, Path(PIN.format("dev")).parent):
        (fleet.root / path).chmod(mode)
        for words in (("lint",), ("render",), ("diff", "--engine", "builtin"), (*SET, "--dry-run")):
            (line,) = fleet.refused(2, *words)
            assert line.startswith(f"{fleet.root / path}"), line
            assert line.endswith(" cannot be read: Permission denied"), line
        (fleet.root / path).chmod(0o755)
