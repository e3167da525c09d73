"""Actions become a tree: the grammar of Go's text/template."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from flux_resourceset.render import lexing
from flux_resourceset.render.failures import TemplateError
from flux_resourceset.render.lexing import Piece, Token


@dataclass(frozen=True, slots=True)
class Literal:
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Dot:
    pass


@dataclass(frozen=True, slots=True)
class Variable:
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """The name of a function; its arguments are the rest of its command."""

    name: str


@dataclass(frozen=True, slots=True)
class Chain:
    """Fields after an operand: `.a.b`, `inputs.a`, `(f x).a`."""

    base: Operand
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command:
    operands: tuple[Operand, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Pipeline:
    commands: tuple[Command, ...]
    variables: tuple[str, ...]
    declares: bool
    line: int


Operand = Literal | Dot | Variable | Call | Chain | Pipeline


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Action:
    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class Branch:
    """`if`, `with` or `range`."""

    word: str
    pipeline: Pipeline
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Jump:
    """`break` or `continue`."""

    word: str


@dataclass(frozen=True, slots=True)
class Invoke:
    """`template "name" pipeline`."""

    name: str
    pipeline: Pipeline | None
    line: int


Node = Text | Action | Branch | Jump | Invoke


@dataclass(frozen=True, slots=True)
class Tree:
    nodes: tuple[Node, ...]
    definitions: Mapping[str, tuple[Node, ...]]


_BRANCHES = ("if", "with", "range")


def parse(source: str, functions: Container[str]) -> Tree:
    """Unknown functions and variables are refused here, as in Go, also where nothing would ever reach them."""
    return _Parser(lexing.pieces(source), _Names(functions)).tree()


class _Names:
    """What may be called, and the variables that are known so far."""

    def __init__(self, functions: Container[str]) -> None:
        self.functions = functions
        self.variables = ["$"]

    def check(self, token: Token) -> None:
        if token.kind == "variable" and token.text not in self.variables:
            raise TemplateError(f"undefined variable {token.text}", token.line)
        if token.kind == "name" and token.text not in self.functions:
            raise TemplateError(
                f"function {token.text!r} is not known to the built-in engine; flux-operator may know it", token.line
            )


class _Parser:
    def __init__(self, pieces: Iterator[Piece], names: _Names) -> None:
        self._pieces = pieces
        self._names = names
        self._definitions: dict[str, tuple[Node, ...]] = {}
        self._loops = 0

    def tree(self) -> Tree:
        nodes, stop = self._list(None)
        assert stop is None
        return Tree(nodes, self._definitions)

    def _list(self, opened: Piece | None) -> tuple[tuple[Node, ...], _Words | None]:
        """Nodes up to the `end` or `else` that closes what was opened, or to the end of the text."""
        nodes: list[Node] = []
        for piece in self._pieces:
            if piece.tokens is None:
                if piece.text:
                    nodes.append(Text(piece.text))
                continue
            words = _Words(piece, self._names)
            if words.word in ("end", "else"):
                if opened is None:
                    raise TemplateError(f"unexpected {words.word}", piece.line)
                return tuple(nodes), words
            node = self._node(piece, words)
            if node is not None:
                nodes.append(node)
        if opened is not None:
            raise TemplateError("an action that needs an end has none", opened.line)
        return tuple(nodes), None

    def _node(self, piece: Piece, words: _Words) -> Node | None:
        word = words.word
        if word in _BRANCHES:
            words.skip()
            return self._branch(piece, words, word)
        if word in ("break", "continue"):
            words.skip()
            words.finish()
            if not self._loops:
                raise TemplateError(f"{word} outside of a range", piece.line)
            return Jump(word)
        if word in ("define", "block"):
            words.skip()
            return self._definition(piece, words, word)
        if word == "template":
            words.skip()
            name = words.string()
            return Invoke(name, words.pipeline() if words.more else None, piece.line)
        return Action(words.pipeline())

    def _branch(self, piece: Piece, words: _Words, word: str) -> Branch:
        mark = len(self._names.variables)
        branch = self._whole_branch(piece, words, word)
        del self._names.variables[mark:]
        return branch

    def _whole_branch(self, piece: Piece, words: _Words, word: str) -> Branch:
        pipeline = words.pipeline(pairs=word == "range")
        self._loops += word == "range"
        body, stop = self._list(piece)
        self._loops -= word == "range"
        assert stop is not None
        otherwise: tuple[Node, ...] = ()
        if stop.word == "else":
            stop.skip()
            if stop.more:  # else if, else with: one end closes both
                chained = stop.word
                if chained not in ("if", "with") or word == "range":
                    raise TemplateError(f"unexpected {stop.text()} after else", stop.line)
                stop.skip()
                return Branch(word, pipeline, body, (self._branch(piece, stop, chained),))
            otherwise, stop = self._list(piece)
            assert stop is not None
            if stop.word != "end":
                raise TemplateError("a second else", stop.line)
        stop.skip()
        stop.finish()
        return Branch(word, pipeline, body, otherwise)

    def _definition(self, piece: Piece, words: _Words, word: str) -> Node | None:
        name = words.string()
        pipeline = words.pipeline() if word == "block" else None
        words.finish()
        outer = self._loops, self._names.variables
        self._loops, self._names.variables = 0, ["$"]
        body, stop = self._list(piece)
        self._loops, self._names.variables = outer
        if stop is None or stop.word != "end":
            raise TemplateError(f"unexpected else in {word}", piece.line)
        if name in self._definitions:
            raise TemplateError(f"template {name!r} is defined twice", piece.line)
        self._definitions[name] = body
        return Invoke(name, pipeline, piece.line) if word == "block" else None


class _Words:
    """The tokens of one action, read from left to right."""

    def __init__(self, piece: Piece, names: _Names) -> None:
        assert piece.tokens
        self._names = names
        self._tokens = piece.tokens
        self._at = 0
        self.line = piece.line

    @property
    def more(self) -> bool:
        return self._at < len(self._tokens)

    @property
    def word(self) -> str:
        return self._tokens[self._at].text if self.more and self._tokens[self._at].kind == "name" else ""

    def text(self) -> str:
        return repr(self._tokens[self._at].text) if self.more else "end of the action"

    def skip(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        self.line = token.line
        return token

    def finish(self) -> None:
        if self.more:
            raise TemplateError(f"unexpected {self.text()}", self.line)

    def string(self) -> str:
        if not self.more or self._tokens[self._at].kind not in ("string", "raw"):
            raise TemplateError(f"a quoted name is missing before {self.text()}", self.line)
        literal = _constant(self.skip())
        assert isinstance(literal, str)
        return literal

    def pipeline(self, pairs: bool = False, close: bool = False) -> Pipeline:
        line = self.line
        variables, declares = self._variables(pairs)
        commands = [self._command()]
        while self._is("|"):
            self.skip()
            commands.append(self._command())
        if close:
            if not self._is(")"):
                raise TemplateError("a parenthesis is not closed", line)
            self.skip()
        else:
            self.finish()
        for command in commands[1:]:
            if isinstance(command.operands[0], Literal | Dot):
                raise TemplateError("a pipeline goes on with something that is not a function", command.line)
        return Pipeline(tuple(commands), variables, declares, line)

    def _variables(self, pairs: bool) -> tuple[tuple[str, ...], bool]:
        """`$a :=`, `$a, $b :=` (range) or `$a =` at the beginning."""
        start = self._at
        variables: list[Token] = []
        while self.more and self._tokens[self._at].kind == "variable":
            variables.append(self.skip())
            if self._is(":=", "="):
                return self._bound(variables, self.skip().text == ":=", pairs)
            if not self._is(","):
                break
            self.skip()
        self._at = start
        return (), False

    def _bound(self, variables: list[Token], declares: bool, pairs: bool) -> tuple[tuple[str, ...], bool]:
        if len(variables) > (2 if pairs else 1):
            raise TemplateError("too many variables", self.line)
        names = tuple(token.text for token in variables)
        if declares:
            self._names.variables += names
        else:
            for token in variables:
                self._names.check(token)
        return names, declares

    def _command(self) -> Command:
        operands: list[Operand] = []
        line = self.line
        while self.more and not self._is("|", ")"):
            operands.append(self._operand())
        if not operands:
            raise TemplateError("a value is missing", line)
        return Command(tuple(operands), line)

    def _operand(self) -> Operand:
        token = self.skip()
        operand: Operand
        fields: list[str] = []
        if token.kind == "sign" and token.text == "(":
            operand = self.pipeline(close=True)
        elif token.kind == "field":
            operand = Dot()
            fields.append(token.text[1:])
        elif token.kind == "dot":
            operand = Dot()
        elif token.kind == "variable":
            self._names.check(token)
            operand = Variable(token.text)
        elif token.kind == "name" and token.text not in ("true", "false", "nil"):
            self._names.check(token)
            operand = Call(token.text)
        else:
            operand = Literal(_constant(token))
        while self.more and self._tokens[self._at].kind == "field" and self._tokens[self._at].glued:
            fields.append(self.skip().text[1:])
        if fields and isinstance(operand, Literal):
            raise TemplateError(f"unexpected .{fields[0]} after a constant", token.line)
        return Chain(operand, tuple(fields)) if fields else operand

    def _is(self, *signs: str) -> bool:
        return self.more and self._tokens[self._at].kind == "sign" and self._tokens[self._at].text in signs


def _constant(token: Token) -> str | int | float | bool | None:
    if token.kind == "raw":
        return token.text[1:-1]
    if token.kind == "string":
        return lexing.unquoted(token)
    if token.kind == "char":
        return lexing.code(token)
    if token.kind == "number":
        return lexing.number(token)
    if token.text in ("true", "false", "nil"):
        return {"true": True, "false": False, "nil": None}[token.text]
    raise TemplateError(f"unexpected {token.text!r}", token.line)
