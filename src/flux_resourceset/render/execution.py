"""A template tree and one input become text. It can reach nothing but that input and the functions."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from flux_resourceset.render import functions, parsing, values
from flux_resourceset.render.failures import TemplateError
from flux_resourceset.render.parsing import Command, Node, Operand, Pipeline

MAX_DEPTH = 100  # of templates that call templates; far more than manifests need, far less than Python's stack
MAX_OUTPUT = values.MAX_TEXT

_NONE_GIVEN = object()
_CALLABLE = frozenset({*functions.TABLE, *functions.LAZY, "inputs"})


class _Break(Exception):  # control flow, not an error
    pass


class _Continue(Exception):
    pass


class Template:
    """A parsed template; rendering it changes nothing in it."""

    def __init__(self, source: str) -> None:
        self._tree = parsing.parse(source, _CALLABLE)

    def render(self, inputs: Mapping[str, Any] | None) -> str:
        """The text for one input; `inputs` in the template is that input, and a key it lacks is an error."""
        data = values.native(inputs)
        run = _Run(self._tree.definitions, functions.Function("inputs", lambda: data, (), None, 0))
        run.nodes(self._tree.nodes, None)
        return "".join(run.output)


@functools.lru_cache(maxsize=64)
def template(source: str) -> Template:
    return Template(source)


class _Run:
    def __init__(self, definitions: Mapping[str, tuple[Node, ...]], inputs: functions.Function) -> None:
        self._definitions = definitions
        self._inputs = inputs
        self._variables: list[tuple[str, Any]] = [("$", None)]
        self._depth = 0
        self._size = 0
        self.output: list[str] = []

    # Nodes

    def nodes(self, nodes: Sequence[Node], dot: Any) -> None:
        mark = len(self._variables)
        for node in nodes:
            match node:
                case parsing.Text():
                    self._write(node.text)
                case parsing.Action():
                    value = self._pipeline(node.pipeline, dot)
                    if not node.pipeline.variables:
                        self._write(values.printed(value))
                case parsing.Branch():
                    self._branch(node, dot)
                case parsing.Jump():
                    raise _Break if node.word == "break" else _Continue
                case parsing.Invoke():
                    self._invoke(node, dot)
        del self._variables[mark:]

    def _write(self, text: str) -> None:
        self._size += len(text)
        if self._size > MAX_OUTPUT:
            raise TemplateError("the output grows beyond all reason")
        self.output.append(text)

    def _branch(self, node: parsing.Branch, dot: Any) -> None:
        mark = len(self._variables)
        if node.word == "range":
            self._range(node, dot)
        else:
            value = self._pipeline(node.pipeline, dot)
            if values.truth(value):
                self.nodes(node.body, value if node.word == "with" else dot)
            else:
                self.nodes(node.otherwise, dot)
        del self._variables[mark:]

    def _range(self, node: parsing.Branch, dot: Any) -> None:
        names = node.pipeline.variables
        value = self._pipeline(node.pipeline, dot)  # without an item, this is what the variables hold
        mark = len(self._variables)
        empty = True
        for key, item in _items(value, len(names), node.pipeline.line):
            empty = False
            for name, element in zip(names, (key, item) if len(names) == 2 else (item,), strict=False):
                self._assign(name, element)
            try:
                self.nodes(node.body, item)
            except _Break:
                break
            except _Continue:
                pass
            finally:
                del self._variables[mark:]
        if empty:
            self.nodes(node.otherwise, dot)

    def _invoke(self, node: parsing.Invoke, dot: Any) -> None:
        body = self._definitions.get(node.name)
        if body is None:
            raise TemplateError(f"template {node.name!r} is not defined", node.line)
        value = self._pipeline(node.pipeline, dot) if node.pipeline else None
        if self._depth == MAX_DEPTH:
            raise TemplateError(f"templates call each other more than {MAX_DEPTH} levels deep", node.line)
        outer, self._variables = self._variables, [("$", value)]
        self._depth += 1
        self.nodes(body, value)
        self._depth -= 1
        self._variables = outer

    # Values

    def _pipeline(self, pipeline: Pipeline, dot: Any) -> Any:
        value: Any = _NONE_GIVEN
        for command in pipeline.commands:
            value = self._command(command, dot, value)
        for name in pipeline.variables:
            if pipeline.declares:
                self._variables.append((name, value))
            else:
                self._assign(name, value)
        return value

    def _assign(self, name: str, value: Any) -> None:
        self._variables[self._place(name)] = (name, value)

    def _place(self, name: str) -> int:
        """Where the innermost variable of this name is; the parser has seen to it that there is one."""
        return max(place for place, (known, _) in enumerate(self._variables) if known == name)

    def _command(self, command: Command, dot: Any, final: Any) -> Any:
        first, *arguments = command.operands
        try:
            if isinstance(first, parsing.Call):
                return self._call(first.name, arguments, dot, final)
            if arguments or final is not _NONE_GIVEN:
                raise TemplateError("can't give an argument to something that is not a function")
            if first == parsing.Literal(None):
                raise TemplateError("nil is not a command")
            return self._operand(first, dot)
        except TemplateError as error:
            if error.line is None:
                error.line = command.line
            raise

    def _operand(self, operand: Operand, dot: Any) -> Any:
        match operand:
            case parsing.Literal():
                return operand.value
            case parsing.Dot():
                return dot
            case parsing.Variable():
                return self._variables[self._place(operand.name)][1]
            case parsing.Call():
                return self._call(operand.name, (), dot, _NONE_GIVEN)
            case parsing.Pipeline():
                return self._pipeline(operand, dot)
            case parsing.Chain():
                value = self._operand(operand.base, dot)
                for name in operand.fields:
                    value = _field(value, name)
                return value

    def _call(self, name: str, arguments: Sequence[Operand], dot: Any, final: Any) -> Any:
        lazy: Iterator[Callable[[], Any]] = (functools.partial(self._operand, each, dot) for each in arguments)
        last = [] if final is _NONE_GIVEN else [final]
        if name in functions.LAZY:
            return _shortened(name, lazy, last)
        function = self._inputs if name == "inputs" else functions.TABLE[name]
        return function([*(each() for each in lazy), *last])


def _shortened(name: str, lazy: Iterator[Callable[[], Any]], last: list[Any]) -> Any:
    """`and` and `or` give the argument that decides, and do not look at those behind it."""
    value: Any = _NONE_GIVEN
    for value in itertools.chain((each() for each in lazy), last):
        if values.truth(value) == (name == "or"):
            return value
    if value is _NONE_GIVEN:
        raise TemplateError(f"wrong number of arguments for {name}: want at least 1 got 0")
    return value


def _field(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        if name not in value:
            raise TemplateError(f"map has no entry for key {name!r}")
        return value[name]
    if value is None:
        raise TemplateError(f"nil pointer evaluating interface {{}}.{name}")
    raise TemplateError(f"can't evaluate field {name} in type {values.type_name(value)}")


def _items(value: Any, variables: int, line: int) -> Iterator[tuple[Any, Any]]:
    if value is None:
        return iter(())
    if isinstance(value, list):
        return enumerate(value)
    if isinstance(value, dict):
        return iter([(key, value[key]) for key in sorted(value)])
    if isinstance(value, int) and not isinstance(value, bool):
        if variables > 1:
            raise TemplateError(f"can't use {value} to iterate over more than one variable", line)
        return ((number, number) for number in range(value))
    raise TemplateError(f"range can't iterate over {values.text(value)}", line)
