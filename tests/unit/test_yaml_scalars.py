"""Values are written so that every YAML reader of Kubernetes takes them for exactly these."""

from __future__ import annotations

import pytest

from flux_resourceset import strict_yaml
from flux_resourceset.render import dialect
from flux_resourceset.repositories import yaml_scalars

DIGEST = "ghcr.io/acme/pay:1.2@sha256:" + "0123456789abcdef" * 4

WORDS = """
    y Y n N yes Yes YES no No NO on On ON off Off OFF true True TRUE false False FALSE null Null NULL ~ = <<
    0 1 -1 +1 007 08 0o17 0O17 0x1f 0X1F 0b11 0B11 0b+1 -0o-7 1_000 1__0 0_x1f +_1 1e3 1E3 1e+3 1e-3 .5 5. 1.5 -.5 +1.5e3 1_0.5
    .inf .Inf .INF -.inf +.INF .nan .NaN .NAN 1:30 1:30:00 -1:30 1:30.5 2026-01-01 2026-1-2 2026-01-01T00:00:00Z
    - ? : --- ... # , [ ] { } & * ! | > ' " % @ ` ?a :a #a &a *a !a |a >a 'a "a %a @a `a [a {a ]a }a ,a a:
"""
TEXTS = [
    "", " ", " a", "a ", "\ta", "a\t", "a: b", "a #b", "a\t#b", "- a", "--- a", "... a", "\ta: b", "2026-01-01 00:00:00",
    "a\nb", "a\r\nb", "a\x85b", "a\u2028b", "a\u2029b", "a\ufeff", "\x00", "\x7f", "\uffff", "\x1b[1m",
]  # fmt: skip


@pytest.mark.parametrize("text", [*WORDS.split(), *TEXTS])
def test_a_text_that_any_reader_takes_for_something_else_is_quoted(text: str) -> None:
    assert not yaml_scalars.fits_plain(text)
    for style in ("", "'", '"', "|"):
        new = yaml_scalars.written(text, style)
        assert new[0] == new[-1] == ("'" if style == "'" and text.replace("\t", "").isprintable() else '"')
        assert strict_yaml.values(f"a: {new} # c\nb: [{new}]") == [{"a": text, "b": [text]}]
        assert [value for _, value in dialect.documents(f"a: {new} # c\nb: [{new}]")] == [{"a": text, "b": [text]}]


@pytest.mark.parametrize(
    "text",
    [
        "a", "v1.2.3", "1.2.3", "1.2.3.4", DIGEST, "a:b", "a#b", "-a", "--a", "a - b", "a'b", 'a"b', "it's", "nULL", "yEs", "1e",
        "e3", "0x", "0xg", "_1", "é", "\U0001f600", "payment app", "http://x:80/?a=b&c", "10:99", "2026-01", "2026-01-01-x", "+",
        ".", "..", ".a", "inf", "nan", "a,b", "a[0]", "a\xa0b", "a{b}",
    ],
)  # fmt: skip
def test_a_text_that_every_reader_takes_for_itself_is_not_quoted(text: str) -> None:
    assert yaml_scalars.written(text) == text
    assert strict_yaml.values(f"a: {text} # c\n") == [{"a": text}]
    assert list(dialect.documents(f"a: {text} # c\n")) == [(1, {"a": text})]


@pytest.mark.parametrize("text", ["a,b", "a[0]", "a}", "{a", "a?b", "a]"])
def test_within_brackets_more_has_to_be_quoted(text: str) -> None:
    assert not yaml_scalars.fits_plain(text, flow=True)
    assert strict_yaml.values(f"[{yaml_scalars.written(text, flow=True)}]") == [[text]]
