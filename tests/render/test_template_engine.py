"""The built-in engine: Go's text/template with << >>, strict about what is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import live
from flux_resourceset import render
from flux_resourceset.render import data_functions, dialect, execution, functions, yaml_bounds
from flux_resourceset.render.execution import Template
from render import oracle, samples


@pytest.mark.parametrize(("expression", "expected"), samples.EXPRESSIONS)
def test_an_expression_has_the_value_that_go_gives_it(expression: str, expected: str) -> None:
    assert Template(f'<< printf "%v" ({expression}) >>').render(samples.INPUT) == expected


@pytest.mark.parametrize(("action", "expected"), samples.ACTIONS)
def test_an_action_leaves_the_text_that_go_leaves(action: str, expected: str) -> None:
    assert Template(action).render(samples.INPUT) == expected


@pytest.mark.parametrize("broken", samples.BROKEN)
def test_what_go_refuses_is_refused(broken: str) -> None:
    with pytest.raises(render.TemplateError):
        Template(broken).render(samples.INPUT)


def test_an_error_names_the_line_of_the_template() -> None:
    with pytest.raises(render.TemplateError, match=r"line 3: map has no entry for key 'nope'"):
        Template("one\n<< inputs.s >>\n<<- inputs.nope >>\n").render({"s": "two"})


def test_an_error_in_the_grammar_names_its_line_too() -> None:
    with pytest.raises(render.TemplateError, match=r"line 2: "):
        Template("one\n<< if >>\n")


def test_rendering_does_not_change_the_inputs() -> None:
    given = {"m": {"a": 1}}
    assert Template('<< set inputs.m "b" 2 >>').render(given) == "map[a:1 b:2]"
    assert given == {"m": {"a": 1}}


def test_a_template_renders_each_input_anew() -> None:
    template = Template('<< $x := "none" >><< if hasKey inputs "x" >><< $x = inputs.x >><< end >><< $x >>')
    assert [template.render({"x": "one"}), template.render({}), template.render({"x": "two"})] == ["one", "none", "two"]


@pytest.mark.parametrize("name", ["__class__", "items", "keys", "_x"])
def test_nothing_of_python_can_be_reached(name: str) -> None:
    for expression in (f"inputs.{name}", f'"text".{name}', f"(list 1).{name}", f"(inputs).{name}"):
        with pytest.raises(render.TemplateError):
            Template(f"<< {expression} >>").render({"s": "x"})


def test_templates_that_call_themselves_come_to_an_end() -> None:
    with pytest.raises(render.TemplateError, match="levels deep"):
        Template('<< define "x" >><< template "x" >><< end >><< template "x" >>').render({})


def test_output_without_end_comes_to_an_end() -> None:
    with pytest.raises(render.TemplateError, match="beyond all reason"):
        Template('<< range 100000 >><< repeat 100000 "x" >><< end >>').render({})


def test_an_unknown_function_points_to_the_other_engine() -> None:
    with pytest.raises(render.TemplateError, match="'urlParse' is not known to the built-in engine; flux-operator may know it"):
        Template('<< urlParse "x" >>').render({})


def test_what_nests_without_end_is_refused() -> None:
    with pytest.raises(render.TemplateError, match="the template is nested too deeply"):
        render.resourceset(oracle.resourceset(f"a: << {'(' * 3000}1{')' * 3000} >>"), [{"id": "a"}])
    for levels in (150, 3000, 100_000):
        with pytest.raises(render.TemplateError, match="nested more than 100 levels deep"):
            render.resourceset(oracle.resourceset(f'a: << repeat {levels} "[" >><< repeat {levels} "]" >>'), [{"id": "a"}])


def test_every_function_states_the_types_of_its_arguments() -> None:
    allowed = {str, int, bool, dict, object}
    for function in functions.TABLE.values():
        assert {*function.parameters, function.rest or object} <= allowed, function.name


README = (live.ROOT / "src" / "flux_resourceset" / "render" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted({*functions.TABLE, *functions.LAZY}))
def test_every_function_is_named_in_the_readme(name: str) -> None:
    assert re.search(rf"`{re.escape(name)}`", README)


def test_the_readme_states_the_bounds_as_they_are() -> None:
    bounds = (
        f"more than {execution.MAX_DEPTH} levels deep",
        f"more than {execution.MAX_OUTPUT // 2**20} MiB of output",
        f"YAML of more than {dialect.DEEPEST} levels",
        f"more than {yaml_bounds.MOST:,} values",
        f"lists of more than {data_functions.MAX_ITEMS:,} numbers",
    )
    assert [text for text in bounds if text not in " ".join(README.split())] == []


def test_the_example_of_the_readme_prints_what_it_says(tmp_path: Path) -> None:
    code, printed = (re.search(rf"```{word}\n(.*?)```", README, re.DOTALL) for word in ("python", "text"))
    assert code
    assert printed
    done = subprocess.run([sys.executable, "-c", code[1]], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (printed[1], "")


def test_the_engine_imports_nothing_of_the_rest_of_the_package() -> None:
    code = "import sys; from flux_resourceset import render; render.resourceset; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = {name for name in done.stdout.split() if name.startswith("flux_resourceset.")}
    assert own
    assert {name for name in own if not name.startswith("flux_resourceset.render")} == set()


def test_the_bounds_of_yaml_come_without_the_templates() -> None:
    code = "import sys; from flux_resourceset.render import yaml_bounds; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "flux_resourceset.render.execution" not in done.stdout.split()


def test_what_the_package_does_not_offer_is_told() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        render.nothing  # noqa: B018
