"""Every planted fault is noticed by a test, or it is explained why none can."""

from __future__ import annotations

import ast

import pytest

from mutants import explained, fault, known, python_faults, run, subjects, template_faults

ENOUGH = 100  # planted faults at least, whatever becomes of the code


@pytest.mark.thorough
def test_every_planted_fault_is_noticed_or_explained() -> None:
    found = run.carried_out(run.plan(everything=False, only=""))
    assert [each.fault.said for each in found if each.how == "not noticed"] == []
    assert len([each for each in found if each.how == "noticed"]) >= ENOUGH


@pytest.mark.parametrize("each", known.KNOWN, ids=lambda each: each.wrong)
def test_a_known_fault_still_fits_the_code(each: known.Known) -> None:
    assert known.planted(each, subjects.ROOT).planted != (subjects.ROOT / each.path).read_text()


@pytest.mark.long
def test_explanations_are_of_faults_that_can_still_be_planted() -> None:
    possible = {made.said for subject in subjects.SUBJECTS for made in subjects.possible(subject)}
    assert explained.EXPLAINED.keys() - possible == set()
    assert all(explained.EXPLAINED.values())


@pytest.mark.long
def test_every_subject_has_faults_that_its_language_takes() -> None:
    for subject in subjects.SUBJECTS:
        chosen = subjects.chosen(subject)
        assert 0 < len(chosen) <= subject.share
        assert len({made.said for made in chosen}) == len(chosen)
        for made in chosen:
            assert made.planted != made.text
            if subject.path.endswith(".py"):
                ast.parse(made.planted)


def test_the_tests_of_every_subject_are_there() -> None:
    named = {test.partition("::")[0] for subject in subjects.SUBJECTS for stage in subject.tests for test in stage}
    assert [name for name in sorted(named) if not (subjects.ROOT / name).is_file()] == []


# What is planted

MODULE = """\
def f(x, ü):
    if x < 1 and ü is not None:
        raise ValueError(f"{x == 2}")
    log.info(x > 5)
    x.add([y for y in ü if y])
    return x
"""
VIEW = """\
    kind: Namespace
    <<- if inputs.labels >>
    name: << inputs.id | quote >>
    <<- end >>
"""


def changed(found: list[fault.Fault]) -> set[str]:
    return {made.said.partition(": ")[2].partition(" → ")[2] for made in found}


def test_python_is_changed_where_it_decides_and_acts_and_not_where_it_speaks() -> None:
    assert changed(python_faults.faults("m.py", MODULE)) == {
        "if False:",
        "if True:",
        "if ((x < 1) or (ü is not None)):",
        "if (x <= 1) and ü is not None:",
        "if x < 0 and ü is not None:",
        "if x < 1 and (ü is None):",
        "pass",
        "log.info((x >= 5))",
        "x.add([y for y in ü if True])",
    }


def test_views_lose_quotes_conditions_and_lines() -> None:
    assert changed(template_faults.faults("v.yaml", VIEW)) == {"<<- if not (inputs.labels) >>", "name: << inputs.id >>", ""}
