"""What a template can do wrong, and the words that tell it. Whether Go refuses the same is in samples.py."""

from __future__ import annotations

from typing import Any

import pytest

from flux_resourceset import render
from flux_resourceset.render import dialect
from flux_resourceset.render.execution import Template
from render import oracle, samples


def refusal(source: str) -> str:
    with pytest.raises(render.TemplateError) as told:
        Template(source).render(samples.INPUT)
    return str(told.value)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("index inputs.m 1", "index: the key of a map is a string, not int"),
        ("index inputs.l 3", "index out of range: 3"),
        ("index inputs.l true", "index out of range: true"),
        ("index inputs.n 1", "can't index item of type int64"),
        ('mustFromJson "{"', "fromJson: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ('mustFromJson "NaN"', "fromJson: NaN is no number that JSON has"),
        ("slice inputs.l 2 1", "slice: 2 to 1 of 3"),
        ("slice inputs.l 0 9", "slice: 0 to 9 of 3"),
        ("and", "wrong number of arguments for and: want at least 1 got 0"),
        ('hasPrefix "a"', "wrong number of arguments for hasPrefix: want 2 got 1"),
        ("quote | eq", "wrong number of arguments for eq: want at least 2 got 1"),
        ('set nil "a" 1', "set: expected map[string]interface {}; got <nil>"),
        ('substr 2 1 "abc"', "the bounds 2 and 1 are not within 'abc'"),
        ('repeat -1 "x"', "a text cannot be repeated -1 times"),
        ("div 1 0", "integer divide by zero"),
        ("has 1 inputs.s", "cannot find on type string"),
        ('regexFind "(?=a)" "a"', "the pattern '(?=a)' uses what Go's patterns do not have"),
        ('regexFind "(" "a"', "the pattern '(' is wrong: missing ), unterminated subpattern at position 0"),
        ("inputs.n 1", "can't give an argument to something that is not a function"),
        ("nil", "nil is not a command"),
    ],
)
def test_a_function_that_cannot_do_what_it_is_told_says_why(expression: str, words: str) -> None:
    assert refusal(f"\n<< {expression} >>") == f"line 2: {words}"


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ('printf "%s"', "printf: %s has no value"),
        ('printf "%d-%d" 1', "printf: %d has no value"),
        ('printf "x" 1', "printf: more values than verbs"),
        ('printf "%d" "a"', "printf: %d of a string is beyond the built-in engine"),
        ('printf "%s" 1', "printf: %s of a int is beyond the built-in engine"),
        ('printf "%#v" inputs.n', "printf: %#v of a int64 is beyond the built-in engine"),
        ('printf "%99999999999999d" 1', "printf: %99999 of a int is beyond the built-in engine"),
        ('trunc 1 "é"', "cutting 'é' would split a character"),
        ('substr 1 2 "é"', "cutting 'é' would split a character"),
        ('b64dec "eA"', "b64dec: Incorrect padding"),
        ('b64dec "/w=="', "b64dec: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        ('regexSplit "(a)" "xay" -1', "regexSplit with groups is beyond the built-in engine"),
        ("index inputs.s 1", "can't index item of type string"),
        ('float64 "inf"', "a number is not finite"),
        ('floor "nan"', "a number is not finite"),
        ("int64 1e30", "1e+30 does not fit into 64 bits"),
        ('"\\xff"', "\\xff is a byte, which is beyond the built-in engine"),
        ("until 1000001", "a list of more than 1000000 numbers is beyond all reason"),
        ("untilStep -9223372036854775808 9223372036854775807 1", "a list of more than 1000000 numbers is beyond all reason"),
        ('repeat 1000000000000 "x"', "a text grows beyond all reason"),
        ('indent 1000000000000 "x"', "a text grows beyond all reason"),
    ],
)
def test_what_go_makes_something_of_that_nobody_can_mean_is_refused(expression: str, words: str) -> None:
    assert refusal(f"<< {expression} >>") == f"line 1: {words}"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('<< define "x" >>a<< else >>b<< end >>', "unexpected else in define"),
        ('<< block "x" 1 >>a<< else >>b<< end >>', "unexpected else in block"),
        ("<< define x >>a<< end >>", "a quoted name is missing before 'x'"),
        ("<< template >>", "a quoted name is missing before end of the action"),
        ("<< $a, $b := 1 >>", "too many variables"),
        ("<< range $a, $b, $c := inputs.l >>x<< end >>", "too many variables"),
        ("<< 1 , 2 >>", "unexpected ','"),
        ("<< := >>", "unexpected ':='"),
        ("<< 08 >>", "bad number 08"),
        ("<< 1__0 >>", "bad number 1__0"),
        ("<< 1e999 >>", "the number 1e999 is too large"),
        ("<< 9223372036854775808 >>", "the number 9223372036854775808 is too large"),
        ("<< 'ab' >>", "'ab' is not one character"),
        ('<< "\\ud800" >>', "\\ud800 is no character"),
        ("<< $x = 1 >>", "undefined variable $x"),
        ("<< range $i, $v := 3 >><< end >>", "can't use 3 to iterate over more than one variable"),
    ],
)
def test_a_mistake_in_the_grammar_is_told_with_its_line(source: str, words: str) -> None:
    assert refusal(f"\n{source}") == f"line 2: {words}"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{[a]: b}", "a key must be a scalar"),
        ("{~: b}", "a key must be a scalar"),
        (".inf", "a number must be finite"),
        ("!!float x", "'x' is no float"),
        ("!!int 1.5", "'1.5' is no int"),
        ("!!bool x", "'x' is no bool"),
        ("!!null x", "'x' is no null"),
        ("\x01", "unacceptable character #x0001: control characters are not allowed"),
        ("\ud800", "'utf-8' codec can't encode character '\\ud800' in position 3: surrogates not allowed"),
        ("[" * 2000 + "]" * 2000, "nested more than 100 levels deep"),
        ("[&a [1], " + "&b [*a, *a], " * 2 + "&c [" + "*b, " * 60_000 + "]]", "its aliases stand for more than 100000 values"),
    ],
)
def test_yaml_that_kubernetes_cannot_hold_is_refused(value: str, words: str) -> None:
    with pytest.raises(render.TemplateError) as told:
        list(dialect.documents(f"a: {value}"))
    assert words in str(told.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{true: 1, NO: 2}", {"true": 1, "false": 2}),
        ("{1.5: a, 2.0: b, 1e3: c}", {"1.5": "a", "2": "b", "1000": "c"}),
        ("{1e400: a}", {"1e400": "a"}),
        ("1e400", "1e400"),
        ("9" * 400, "9" * 400),
        ("9" * 5000, "9" * 5000),
        ("0b_", "0b_"),
        ("18446744073709551616", 1.8446744073709552e19),
        ("<<", "<<"),
        ("{<<: {a: 1}, b: 2}", {"a": 1, "b": 2}),
        ("[!!float 5, !!int '5', !!bool yes, !!null ~, !!str 5]", [5, 5, True, None, "5"]),
    ],
)
def test_yaml_means_what_it_means_to_kubernetes(text: str, value: Any) -> None:
    assert list(dialect.documents(f"a: {text}")) == [(1, {"a": value})]


@pytest.mark.parametrize("name", ["labels", "annotations"])
def test_labels_that_are_no_map_are_refused(name: str) -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x, {name}: [a]}}\n"
    with pytest.raises(render.TemplateError, match=f"the {name} of an object are not a map"):
        render.resourceset(oracle.resourceset(text), [{"id": "a"}])
