"""An edit of a YAML file replaces the bytes of one value and no others, or is refused in one line."""

from __future__ import annotations

import math
from typing import Any

import pytest

from flux_resourceset import differences, strict_yaml
from flux_resourceset.repositories import edits, trees, yaml_scalars

IMAGE = ("spec", "image")
DIGEST = "ghcr.io/acme/pay:1.2@sha256:" + "0123456789abcdef" * 4


def edited(text: str, value: Any, steps: tuple[str | int, ...] = IMAGE, document: int = 0) -> str:
    return edits.with_value(text.encode(), steps, value, document=document).decode()


def refusal(text: str | bytes, value: Any = "new", steps: tuple[str | int, ...] = IMAGE, document: int = 0) -> str:
    with pytest.raises(edits.Refused) as caught:
        edits.with_value(text if isinstance(text, bytes) else text.encode(), steps, value, document=document)
    line = str(caught.value)
    assert line.isprintable()
    assert line
    return line


REPLACED = {
    "plain": ("spec:\n  image: a:1\n", DIGEST, f"spec:\n  image: {DIGEST}\n"),
    "with a comment behind it": ("spec:\n  image:   a  # pinned\n", "b", "spec:\n  image:   b  # pinned\n"),
    "single quotes": ("spec:\n  image: 'a' # c\n", "it's", "spec:\n  image: 'it''s' # c\n"),
    "single quotes that cannot hold it": ("spec:\n  image: 'a' # c\n", "1\n2", 'spec:\n  image: "1\\n2" # c\n'),
    "double quotes": ('spec:\n  image: "a" # c\n', 'a\\"é\t', 'spec:\n  image: "a\\\\\\"é\\t" # c\n'),
    "quotes are for texts": ('spec:\n  image: "2" # c\n', 3, "spec:\n  image: 3 # c\n"),
    "a number by a text": ("spec:\n  image: 2 # c\n", "3", 'spec:\n  image: "3" # c\n'),
    "a number by a number": ("spec:\n  image: 0x1f # c\n", 2.5, "spec:\n  image: 2.5 # c\n"),
    "by true": ("spec:\n  image: a # c\n", True, "spec:\n  image: true # c\n"),
    "by null": ("spec:\n  image: 'a' # c\n", None, "spec:\n  image: null # c\n"),
    "a whole number that is a float to Python": ("spec:\n  image: 3\n", 4.0, "spec:\n  image: 4\n"),
    "a large number": ("spec:\n  image: 3\n", 1e300, "spec:\n  image: 1.0e+300\n"),
    "a small number": ("spec:\n  image: 3\n", -1.5e-7, "spec:\n  image: -1.5e-07\n"),
    "CRLF": ("spec:\r\n  image: a # c\r\n  x: 1\r\n", "b", "spec:\r\n  image: b # c\r\n  x: 1\r\n"),
    "byte order mark": ("\ufeffspec:\n  image: a\n  x: 1\n", "b", "\ufeffspec:\n  image: b\n  x: 1\n"),
    "byte order mark and comment": ("\ufeff# é\nspec:\n  image: a\n", "b", "\ufeff# é\nspec:\n  image: b\n"),
    "characters beyond the BMP": ("# \U0001f600\nspec:\n  \U0001f600: é\n  image: a # \U0001f600\n", "\U0001f600",
        "# \U0001f600\nspec:\n  \U0001f600: é\n  image: \U0001f600 # \U0001f600\n"),
    "no break at the end": ("spec:\n  image: a", "bb", "spec:\n  image: bb"),
    "tabs": ("spec:\n  image:\ta\t# c\n", "b", "spec:\n  image:\tb\t# c\n"),
    "on a line of its own": ("spec:\n  image: # c\n    # d\n    a\n", "b", "spec:\n  image: # c\n    # d\n    b\n"),
    "plain on several lines": ("spec:\n  image: a\n    b\n\n    c # d\n  x: 1\n", "e", "spec:\n  image: e # d\n  x: 1\n"),
    "quoted on several lines": ('spec:\n  image: "a\n    b" # d\n  x: 1\n', "e", 'spec:\n  image: "e" # d\n  x: 1\n'),
    "an empty one": ("spec:\n  image:\n  x: 1\n", "b", "spec:\n  image: b\n  x: 1\n"),
    "an empty one at the end": ("spec:\n  image:", "b", "spec:\n  image: b"),
    "an empty one before a blank": ("spec:\n  image: \n", "b", "spec:\n  image: b\n"),
    "an empty one before a comment": ("spec:\n  image: # c\n", "b", "spec:\n  image: b # c\n"),
    "an empty one, CRLF": ("spec:\r\n  image:\r\n  x: 1\r\n", "b", "spec:\r\n  image: b\r\n  x: 1\r\n"),
    "an anchor that nobody uses": ("spec:\n  image: &x a # c\n", "b", "spec:\n  image: &x b # c\n"),
    "an anchor before a comment": ("spec:\n  image: &x # c\n    'a'\n", "b", "spec:\n  image: &x # c\n    'b'\n"),
    "an anchor with nothing behind it": ("spec:\n  image: &x # c\n  z: 1\n", "b", "spec:\n  image: &x b # c\n  z: 1\n"),
    "an anchor of another document": ("spec:\n  image: &x a\n---\na: &x 1\nb: *x\n", "b",
        "spec:\n  image: &x b\n---\na: &x 1\nb: *x\n"),
    "the tag of texts": ("spec:\n  image: !!str 3 # c\n", "4", 'spec:\n  image: !!str "4" # c\n'),
    "the tag of texts, empty": ("spec:\n  image: !!str # c\n", "b", "spec:\n  image: !!str b # c\n"),
    "literal": ("spec:\n  image: |\n    a\n    # no comment\n  # c\n  x: 1\n", "b", "spec:\n  image: b\n  # c\n  x: 1\n"),
    "literal with a comment": ("spec:\n  image: |- # c\n    a\n\n    b  \n\n\n  x: 1\n", "b",
        "spec:\n  image: b # c\n\n\n  x: 1\n"),
    "folded at the end": ("spec:\n  image: >+2\n      a\n    b", "c d", "spec:\n  image: c d"),
    "literal with nothing in it": ("spec:\n  image: |\n\n  x: 1\n", "b", "spec:\n  image: b\n\n  x: 1\n"),
    "literal, CRLF": ("spec:\r\n  image: |\r\n    a\r\n    b\r\n  x: 1\r\n", "b\n", 'spec:\r\n  image: "b\\n"\r\n  x: 1\r\n'),
    "in brackets": ("spec: {image: a, x: [1]} # c\n", "b:1", "spec: {image: b:1, x: [1]} # c\n"),
    "in brackets, with a comma": ("spec: {image: a, x: [1]} # c\n", "b,c", 'spec: {image: "b,c", x: [1]} # c\n'),
    "in brackets, empty": ("spec: {image: , x: [1]} # c\n", "b", "spec: {image: b, x: [1]} # c\n"),
    "in brackets on several lines": ("spec: {\n  # c\n  image: 'a' # d\n  , x: 1 }\n", "b",
        "spec: {\n  # c\n  image: 'b' # d\n  , x: 1 }\n"),
    "JSON": ('{"spec":{"image":"a","x":1}}', "b", '{"spec":{"image":"b","x":1}}'),
    "a quoted key": ("'spec':\n  \"image\" : a\n", "b", "'spec':\n  \"image\" : b\n"),
    "an explicit key": ("spec:\n  ? image\n  : a # c\n", "b", "spec:\n  ? image\n  : b # c\n"),
    "behind a merge key": ("d: &d {image: c}\nspec:\n  <<: *d\n  image: a\n", "b",
        "d: &d {image: c}\nspec:\n  <<: *d\n  image: b\n"),
    "a date, which is text to Kubernetes": ("spec:\n  image: 2026-01-01\n", "2026-01-02", 'spec:\n  image: "2026-01-02"\n'),
}  # fmt: skip


@pytest.mark.parametrize(("text", "value", "expected"), REPLACED.values(), ids=REPLACED)
def test_a_value_is_replaced_and_nothing_else(text: str, value: Any, expected: str) -> None:
    assert edited(text, value) == expected
    assert differences.same(edits.scalar(expected.encode(), IMAGE), yaml_scalars.as_read(value))
    before, after = (strict_yaml.values(each.removeprefix("\ufeff")) for each in (text, expected))
    for documents in (before, after):
        del documents[0]["spec"]["image"]
    assert differences.same(before, after)


ADDED = {
    "last in the file": ("spec:\n  a: 1\n", "spec:\n  a: 1\n  image: new\n"),
    "no break at the end": ("spec:\n  a: 1", "spec:\n  a: 1\n  image: new"),
    "CRLF": ("spec:\r\n  a: 1\r\nb: 2\r\n", "spec:\r\n  a: 1\r\n  image: new\r\nb: 2\r\n"),
    "CRLF without break at the end": ("spec:\r\n  a: 1", "spec:\r\n  a: 1\r\n  image: new"),
    "comments behind": ("spec:\n  a: 1 # c\n  # d\n# e\nb: 2\n", "spec:\n  a: 1 # c\n  image: new\n  # d\n# e\nb: 2\n"),
    "a comment that ends the file": ("spec:\n  a: 1\n  # d", "spec:\n  a: 1\n  image: new\n  # d"),
    "behind a literal": ("spec:\n  a: |\n    x\n    # y\n\n  # c\nb: 2\n",
        "spec:\n  a: |\n    x\n    # y\n  image: new\n\n  # c\nb: 2\n"),
    "behind a literal that keeps its breaks": ("spec:\n  a: |+\n    x\n\nb: 2\n",
        "spec:\n  a: |+\n    x\n\n  image: new\nb: 2\n"),
    "behind a literal at the end": ("spec:\n  a: |-\n    x", "spec:\n  a: |-\n    x\n  image: new"),
    "behind a map": ("spec:\n    a:\n      b:\n        c: 1\nd: 1\n",
        "spec:\n    a:\n      b:\n        c: 1\n    image: new\nd: 1\n"),
    "behind a list": ("spec:\n  a:\n  - 1\n  -\nd: 1\n", "spec:\n  a:\n  - 1\n  -\n  image: new\nd: 1\n"),
    "behind brackets": ("spec:\n  a: [1,\n    2] # c\nd: 1\n", "spec:\n  a: [1,\n    2] # c\n  image: new\nd: 1\n"),
    "behind an alias": ("z: &z 1\nspec:\n  a: *z # c\nd: 1\n", "z: &z 1\nspec:\n  a: *z # c\n  image: new\nd: 1\n"),
    "behind nothing": ("spec:\n  a:  # c\nd: 1\n", "spec:\n  a:  # c\n  image: new\nd: 1\n"),
    "behind several lines": ("spec:\n  a: x\n    y # c\nd: 1\n", "spec:\n  a: x\n    y # c\n  image: new\nd: 1\n"),
    "behind an anchor": ("spec: &s\n   a: 1\nd: 1\n", "spec: &s\n   a: 1\n   image: new\nd: 1\n"),
    "explicit keys": ("spec:\n  ? a\n  : 1\nd: 1\n", "spec:\n  ? a\n  : 1\n  image: new\nd: 1\n"),
    "between lines that end otherwise": ("x: 1\r\nspec:\n  a: 1\nb: 2\r\n", "x: 1\r\nspec:\n  a: 1\n  image: new\nb: 2\r\n"),
    "before another document": ("spec:\n  a: 1\n---\nb: 1\n", "spec:\n  a: 1\n  image: new\n---\nb: 1\n"),
    "before the end of the document": ("spec:\n  a: 1\n...\n", "spec:\n  a: 1\n  image: new\n...\n"),
    "merged": ("d: &d {image: c}\nspec:\n  <<: *d\n", "d: &d {image: c}\nspec:\n  <<: *d\n  image: new\n"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ADDED.values(), ids=ADDED)
def test_a_missing_key_is_appended_to_a_map_in_block_style(text: str, expected: str) -> None:
    assert edited(text, "new") == expected
    assert strict_yaml.values(expected)[0]["spec"].pop("image") == "new"


def test_a_key_goes_to_the_item_of_a_list_that_is_meant() -> None:
    text = "l:\n- a: 1\n  b: 2\n-   a: 3 # c\n- a: 4\n"
    assert edited(text, "x", ("l", 1, "b")) == "l:\n- a: 1\n  b: 2\n-   a: 3 # c\n    b: x\n- a: 4\n"
    assert edited(text, "x", ("l", 0, "b")) == "l:\n- a: 1\n  b: x\n-   a: 3 # c\n- a: 4\n"
    assert edited("- a\n- 'b' # c\n", "x", (1,)) == "- a\n- 'x' # c\n"


def test_an_appended_key_is_quoted_where_it_would_be_no_text() -> None:
    assert edited("spec:\n  a: 1\n", 1, ("spec", "on")) == 'spec:\n  a: 1\n  "on": 1\n'
    assert edited("spec:\n  a: 1\n", "", ("spec", "a: b")) == 'spec:\n  a: 1\n  "a: b": ""\n'
    assert edited("a: 1", None, ("--- b",)) == 'a: 1\n"--- b": null'


def test_documents_are_counted_as_kubernetes_counts_them() -> None:
    text = "# nothing\n---\n---\na: 1\n---\n# c\n---\na: 2 # d\n"
    assert edits.scalar(text.encode(), ("a",), document=1) == 2
    assert edited(text, 3, ("a",), document=1) == "# nothing\n---\n---\na: 1\n---\n# c\n---\na: 3 # d\n"
    assert refusal(text, 3, ("a",), document=2) == "there is no document 3 in the file; it has 2"
    assert "document 0" in refusal(text, 3, ("a",), document=-1)


@pytest.mark.parametrize("value", ["a", 1, 1.5, 1.0, True, None])
def test_an_equal_value_leaves_the_text_as_it_is(value: Any) -> None:
    text = f"x: &x {yaml_scalars.written(value)}\nspec: {{image: *x}}\n"
    assert edited(text, value) == text


def test_true_is_not_one() -> None:
    assert edited("spec:\n  image: 1\n", True) == "spec:\n  image: true\n"
    assert edited("spec:\n  image: yes\n", 1) == "spec:\n  image: 1\n"
    assert edited("spec:\n  image: 1e3\n", "1e3") == 'spec:\n  image: "1e3"\n'


ALIASES = "".join(f"{name}: &{name} [{', '.join([f'*{inner}'] * 10)}]\n" for inner, name in ("ab", "bc", "cd", "de", "ef"))
BOMB = f"a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n{ALIASES}"
REFUSED = {
    "an alias": ("a: &x 1\nspec:\n  image: *x\n", "spec.image is the alias *x"),
    "what holds it is an alias": ("a: &x {image: 1}\nspec: *x\n", "spec is the alias *x"),
    "an anchor that is used": ("spec:\n  image: &x a\nb: *x\n", "its anchor &x is used elsewhere"),
    "an anchor above that is used": ("spec: &x\n  image: a\nb: *x\n", "more than this field would change"),
    "an anchor above to which a key would come": ("spec: &x\n  a: a\nb:\n  <<: *x\n", "more than this field would change"),
    "a map": ("spec:\n  image: {a: 1}\n", "spec.image is a map or a list"),
    "a list": ("spec:\n  image:\n  - a\n", "spec.image is a map or a list"),
    "no key within brackets": ("spec: {a: 1}\n", "nothing is added within brackets"),
    "an empty map": ("spec: {}\n", "nothing is added within brackets"),
    "no map": ("spec:\n", "spec.image: what should hold it is no map"),
    "nothing there": ("a: 1\n", "spec is not there"),
    "it comes with a merge key": ("d: &d {spec: {image: a}}\n<<: *d\n", "spec is not there"),
    "a merge key behind it": ("d: &d {image: c}\nspec:\n  image: a\n  <<: *d\n", "spec.image stands before a merge key"),
    "an alias as its key": ("a: &x image\nspec:\n  *x : a\n", "spec.image cannot be replaced where it stands"),
    "a key that steers terminals": ('"a\\e": 1\n"a\\e": 2\n', "line 2: invalid YAML: duplicate key"),
    "a break that is none to many": ("spec:\n  a: 1\x85b: 2\n", "would follow a break that is none to many readers"),
    "a tag": ("spec:\n  image: !!int 3\n", "spec.image has a tag, tag:yaml.org,2002:int"),
    "a tag of nobody": ("spec:\n  image: !mine 3\n", "invalid YAML"),
    "a key without value in brackets": ("spec: {image}\n", "more than this field would change"),
    "an explicit key without value": ("spec:\n  ? image\n", "spec.image"),
    "a literal without its last break": ("spec:\n  a: |\n    x", "more than this field would change"),
    "a key twice": ("spec:\n  image: a\nb: {c: 1, c: 2}\n", 'line 3: invalid YAML: duplicate key "c"; correct it first'),
    "a list as key": ("spec:\n  image: a\n  [b]: 1\n", "line 3"),
    "no YAML": ("spec:\n  image: 'a\n", "line 3"),
    "no text": (b"spec:\n  image: \xff\n", "line 2: is not UTF-8 text"),
    "UTF-16": ("spec: {image: a}\n".encode("utf-16"), "is not UTF-8 text"),
    "controls": ("spec:\n  image: a\x00\n", "control characters are not allowed"),
    "two byte order marks": ("\ufeff\ufeffspec: {image: a}\n", "two byte order marks"),
    "nothing at all": ("", "there is no document 1 in the file; it has 0"),
    "it holds itself": ("spec: &x\n  image: a\n  b: *x\n", "it holds itself"),
    "a bomb": (BOMB + "spec:\n  image: a\n", "its aliases stand for more than"),
    "deep": ("spec:\n  image: a\nb: " + "[" * 70 + "]" * 70, "nested more than 64 levels deep"),
    "very deep": ("spec:\n  image: a\nb: " + "[" * 100_000, "nested more than 64 levels deep"),
    "large": ("spec:\n  image: a\n" + "#" * trees.LARGEST, f"more than {trees.LARGEST} bytes"),
    "a tag before something else": ("spec:\n  image: a\nb: !!int [1]\n", "a tag stands before a value that it does not fit"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_replaced_alone_is_refused_in_one_line(text: str | bytes, words: str) -> None:
    assert words in refusal(text)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (2**63, "more than 63 bits"),
        (-(2**63), "more than 63 bits"),
        pytest.param(10**5000, "more than 63 bits", id="a very long number"),
        (math.inf, "must be finite"),
        (math.nan, "must be finite"),
        ("\ud800", "half of a surrogate pair"),
        ([1], "only a text, a number, true, false or null"),
        ({"a": 1}, "only a text, a number, true, false or null"),
        (b"a", "only a text, a number, true, false or null"),
    ],
)
def test_a_value_that_yaml_cannot_say_is_refused(value: Any, words: str) -> None:
    line = refusal("spec:\n  image: a\n", value)
    assert line.startswith("spec.image: ")
    assert words in line


def test_the_name_of_a_field_stays_on_one_line() -> None:
    assert refusal("a: {}\n", 1, ("a", "b\n\x1b[1m")).startswith("'a.b\\n\\x1b[1m'")
    assert refusal("a: {}\n", 1, ("a", 0)) == "a[0]: what should hold it is no list; make it one first"
    assert refusal("- 1\n", 1, (7,)).startswith("[7] is not there")


PROVIDER = """\
# The inputs of payment-app
apiVersion: fluxcd.controlplane.io/v1
spec: # what Flux gets
  # Static: they stand here
  type: Static
  defaultValues: &v
    image: a # pinned
  # behind
# the end
status: {}
---
spec: {type: Static} # not this one
"""


def test_a_whole_map_is_replaced_and_nothing_around_it() -> None:
    value = {
        "type": "ExternalService",
        "filter": {"limit": 10000},
        "headers": [],
        "more": [{"a": "1", "b": [1, 2.5]}, "x\ny\n"],
        "on": {},
    }
    spec = """\
type: ExternalService
  filter:
    limit: 10000
  headers: []
  more:
  - a: "1"
    b:
    - 1
    - 2.5
  - |
    x
    y
  "on": {}
"""
    expected = PROVIDER.replace(PROVIDER[PROVIDER.index("type:") : PROVIDER.index("  # behind")], spec)
    for break_ in ("\n", "\r\n"):
        text = edits.with_block(PROVIDER.replace("\n", break_).encode(), ("spec",), value)
        assert text.decode() == expected.replace("\n", break_)
        assert differences.same(edits.scalar(text, ("spec",)), value)


def test_a_map_in_brackets_becomes_one_in_block_style_and_its_comment_stays() -> None:
    text = edits.with_block(PROVIDER.encode(), ("spec",), {"a": {"b": None}}, document=1)
    assert text.decode() == PROVIDER.replace("spec: {type: Static} # not this one\n", "spec: # not this one\n  a:\n    b: null\n")
    assert edits.with_block(b"l:\n- s: &x {a: 1}", ("l", 0, "s"), {"b": "c\nd"}) == b'l:\n- s: &x\n    b: "c\\nd"'
    assert edits.with_block(b"a:\n  b: 1\nc: 2\n", (), {"d": 3}) == b"d: 3\n"
    assert edits.with_block(b"a: {b: 1.0}", ("a",), {"b": 1}) == b"a: {b: 1.0}"


@pytest.mark.parametrize(
    ("text", "value", "words"),
    [
        ("a: {b: {c: 1}}", {"x": 1}, "a.b stands within brackets"),
        ("a:\n  b: 1\n", {"x": 1}, "a.b is no map"),
        ("a:\n  c: 1\n", {"x": 1}, "a.b is no map"),
        ("a:\n  b: &x\n    c: 1\nd: *x\n", {"x": 1}, "more than this field would change"),
        ("a:\n  b:\n    c: &x 1\nd: *x\n", {"x": 1}, "a.b cannot be replaced where it stands"),
        ("a:\n  b:\n    c: 1\n", {1: 1}, "every key must be a text"),
        ("a:\n  b:\n    c: 1\n", {"x": [b"1"]}, "only a text, a number"),
    ],
)
def test_a_map_that_cannot_be_replaced_alone_is_refused(text: str, value: Any, words: str) -> None:
    with pytest.raises(edits.Refused, match=words):
        edits.with_block(text.encode(), ("a", "b"), value)


SECRET = b"# the token\napiVersion: external-secrets.io/v1\nkind: ExternalSecret\nspec:\n  refreshInterval: 1h # c\n"


@pytest.mark.parametrize(
    "text",
    [
        "", "\n", "\n\n", "   ", "# c", "# c\n", "---", "--- # c\n", "\ufeff", "\ufeffa: 1\n", "\ufeffa: 1", "a: 1\n", "a: 1",
        "{a: 1}", "a: 1\r\n", "a: 1\r\nb: 2", "a: 1\r", "a: 1\n# c\n", "a: 1\n# c", "a: 1\n...\n", "a: 1\n...", "a: 1\n---\n",
        "a: 1\n---", "---\na: 1\n---\nb: 1\n", "a: |+\n  x\n\n", "a: |-\n  x", "a: é\x85",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "manifest", [SECRET, SECRET[:-1], b"---\n" + SECRET, SECRET.replace(b"\n", b"\r\n"), b"# c\n---\nb: 1\n...\n", b"--- {a: 1}"]
)
def test_a_document_comes_and_goes_without_a_trace(text: str, manifest: bytes) -> None:
    longer = edits.with_document(text.encode(), manifest)
    assert longer.startswith(text.encode())
    before = strict_yaml.values(text.removeprefix("\ufeff"))
    assert strict_yaml.values(longer.decode().removeprefix("\ufeff")) == before + strict_yaml.values(manifest.decode())[-1:]
    last = sum(value is not None for value in before)
    assert edits.without_document(longer, last).decode() == text


def test_a_document_is_added_with_the_line_ends_of_the_file() -> None:
    assert edits.with_document(b"a: 1\r\n", b"---\nb:\n  c: 1\n") == b"a: 1\r\n---\r\nb:\r\n  c: 1\r\n"
    assert edits.with_document(b"a: 1\n", b"b:\r\n  c: 1") == b"a: 1\n---\nb:\n  c: 1\n"
    assert edits.with_document(b"a: 1", b"b:\r\n  c: 1\r\n") == b"a: 1\r\n---\r\nb:\r\n  c: 1"


def test_documents_before_and_behind_the_one_that_goes_stay() -> None:
    text = b"# head\na: 1\n---\nb: 2 # c\n# d\n--- # third\nc: 3\n...\n"
    assert edits.without_document(text, 0) == b"# head\n---\nb: 2 # c\n# d\n--- # third\nc: 3\n...\n"
    assert edits.without_document(text, 1) == b"# head\na: 1\n--- # third\nc: 3\n...\n"
    assert edits.without_document(text, 2) == b"# head\na: 1\n---\nb: 2 # c\n# d\n"
    with pytest.raises(edits.Refused, match="there is no document 4"):
        edits.without_document(text, 3)


@pytest.mark.parametrize(
    ("text", "manifest", "words"),
    [
        ("a: 1\n", "a: 1\n---\nb: 1\n", "one document can be added at a time"),
        ("a: 1\n", "a: 1\n---\n", "one document can be added at a time, and no empty one"),
        ("a: 1\n", "# nothing\n", "one document can be added at a time"),
        ("a: 1\n", "%YAML 1.1\n---\na: 1\n", "directives"),
        ("a: 1\n", "a: [\n", "invalid YAML"),
        ("a: [\n", "a: 1\n", "invalid YAML"),
        ("a: |\n  x", "a: 1\n", "the other documents of the file would change"),
        ("a: 1", "a: |\n  x\n", "the other documents of the file would change"),
    ],
)
def test_a_document_that_would_change_another_is_refused(text: str, manifest: str, words: str) -> None:
    with pytest.raises(edits.Refused, match=words):
        edits.with_document(text.encode(), manifest.encode())


def test_a_place_where_nothing_stands_is_absent() -> None:
    text = b"a: {b: [1, null], <<: {c: 0o17}}\n"
    assert edits.scalar(text, ("a", "b", 0)) == 1
    assert edits.scalar(text, ("a", "b", 1)) is None
    assert edits.scalar(text, ("a", "c")) == 15
    for steps in (("a", "x"), ("a", "b", 2), ("a", "b", -1), ("a", "b", "0"), ("a", 0), ("x", "y"), ("a", "b", 0, "c")):
        assert edits.scalar(text, steps) is differences.ABSENT
    with pytest.raises(edits.Refused, match="line 1"):
        edits.scalar(b"a: ]", ("a",))
