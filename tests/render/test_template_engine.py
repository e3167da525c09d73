"""The built-in engine: Go's text/template with << >>, strict about what is missing."""

from __future__ import annotations

import pytest

from flux_resourceset import render
from flux_resourceset.render import functions
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
