"""Templates in kubectl's dialect of JSONPath."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flux_resourceset.cli import failures
from flux_resourceset.cli.output import jsonpath, shapes

FLEET: dict[str, Any] = {
    "items": [
        {"id": "a", "n": 3, "env": "dev", "list": [1, 2, 3], "labels": {"x.y/z": "q"}, "on": True},
        {"id": "b", "n": 10, "env": "prod", "list": [], "none": None, "on": False},
    ]
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.items[*].id}", "a b"),
        ("ids: {.items[*].id}!", "ids: a b!"),
        ('{range .items[*]}{.id}{"\\t"}{.n}{"\\n"}{end}', "a\t3\nb\t10\n"),
        ("{range .items[*]}{.id}:{range .list[*]} {@}{end};{end}", "a: 1 2 3;b:;"),
        ('{.items[?(@.env=="prod")].id}', "b"),
        ("{.items[?(@.env=='dev')].id}", "a"),
        ('{.items[?(@.env != "dev")].id}', "b"),
        ("{.items[?(@.n>5)].id}", "b"),
        ("{.items[?(@.n<=3)].id}", "a"),
        ("{.items[?(@.on==true)].id}", "a"),
        ("{.items[?(@.labels)].id}", "a"),
        ("{.items[?(@.list[0])].id}", "a"),
        ("{.items[?(@.env>5)].id}", ""),
        ("{.items[?(@.n==true)].id}", ""),
        ("{.items[0].labels.x\\.y/z}", "q"),
        ("{.items[0]['labels']['x.y/z']}", "q"),
        ("{.items[0]['id','n']}", "a 3"),
        ("{.items[1,0].id}", "b a"),
        ("{.items[-1].id}", "b"),
        ("{.items[-1:].id}", "b"),
        ("{.items[0].list[1:]}", "2 3"),
        ("{.items[0].list[::2]}", "1 3"),
        ("{.items[7].id}", ""),
        ("{..id}", "a b"),
        ("{.items.*.id}", "a b"),
        ("{$.items[0].id}", "a"),
        ("{.items[*].nothing}", ""),
        ("{.items[0].list}", "[1,2,3]"),
        ("{.items[0].labels}", '{"x.y/z":"q"}'),
        ("{.items[0].on} {.items[1].none}", "true null"),
        ('{"}"}{.items[?(@.id=="}")].id}', "}"),
    ],
)
def test_a_template_prints_what_kubectl_would(template: str, text: str) -> None:
    assert jsonpath.Template(template).text(FLEET) == text


@pytest.mark.parametrize(
    "template",
    [
        ".items", "{.items", "{end}", "{range .items[*]}", "{}", "{items}", "{3}", "{.items[0}", "{.items[]}", "{.a..}", "{.a b}",
        '{.items[?(@.env=~"d")]}', '{.items[?(@.a=="b" && @.c=="d")]}', "{.items[(@.length-1)]}", "{len(.items)}",
        "{.items[::0]}", "{.items[?(@.a==)]}", "{.items[?@.a]}", "{range}{end}", '{.a["b]}',
    ],
)  # fmt: skip
def test_what_is_beyond_the_dialect_is_refused_in_one_line(template: str) -> None:
    with pytest.raises(failures.Failure) as refused:
        shapes.template(template)
    (line,) = refused.value.lines
    assert refused.value.code == failures.USAGE
    assert "\n" not in line


def test_ranges_and_filters_in_each_other_have_an_end() -> None:
    for template in ("{range .a}" * 60 + "{end}" * 60, "{" + ".a[?(@" * 60 + ")]" * 60 + "}"):
        with pytest.raises(jsonpath.Mistake):
            jsonpath.Template(template)


@given(st.text(alphabet="{}[]().*?@$'\"\\,:=<>! \nabend01range-", max_size=30))
def test_any_text_is_a_template_or_a_mistake(text: str) -> None:
    try:
        found = jsonpath.Template(text).text(FLEET)
    except jsonpath.Mistake as mistake:
        found = str(mistake)
    assert isinstance(found, str)


def test_custom_columns_have_a_row_for_each_and_say_what_is_missing() -> None:
    columns = shapes.custom_columns("ID:.id,LABELS:.labels,FIRST TWO:.list[0,1],X:{.nothing}")
    assert columns.heads == ["ID", "LABELS", "FIRST TWO", "X"]
    assert columns.cells(FLEET["items"][0]) == ["a", '{"x.y/z":"q"}', "1,2", "<none>"]
    for wrong in ("ID", ":.id", "ID:", "ID:.id,", "ID:.a["):
        with pytest.raises(failures.Failure):
            shapes.custom_columns(wrong)


def test_sorting_is_stable_and_takes_numbers_as_numbers() -> None:
    rows = [
        {"id": "prod-10", "n": 10, "e": "x"},
        {"id": "prod-9", "n": 9, "e": "x"},
        {"id": "b", "e": "x"},
        {"id": "a", "n": "9.5"},
    ]

    def ids(path: str) -> list[str]:
        return [row["id"] for row in shapes.Order(path).sorted(rows)]

    assert ids(".n") == ["b", "prod-9", "a", "prod-10"]
    assert ids("id") == ["a", "b", "prod-9", "prod-10"]
    assert ids("{.e}") == ["a", "prod-10", "prod-9", "b"]
    assert shapes.Order(".labels.zone").sorted(rows, {"labels"}) == rows
    with pytest.raises(failures.Failure, match="nothing here has such a field"):
        shapes.Order(".nothing").sorted(rows)
    with pytest.raises(failures.Failure):
        shapes.Order(".a[")
