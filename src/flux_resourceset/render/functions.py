"""The functions that templates may call, and the check of their arguments against the annotations."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flux_resourceset.render import data_functions, text_functions, values
from flux_resourceset.render.failures import TemplateError

# Words of Go's text/template that see their arguments one by one; execution.py knows them.
LAZY = frozenset({"and", "or"})


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    call: Callable[..., Any]
    parameters: tuple[type, ...]
    rest: type | None
    required: int

    def __call__(self, arguments: Sequence[Any]) -> Any:
        count = len(arguments)
        if count < self.required or (self.rest is None and count > len(self.parameters)):
            expected = f"at least {self.required}" if self.rest else str(len(self.parameters))
            raise TemplateError(f"wrong number of arguments for {self.name}: want {expected} got {count}")
        kinds = [*self.parameters, *([self.rest] * max(0, count - len(self.parameters)))]
        return self.call(*(_fitting(self.name, item, wanted) for item, wanted in zip(arguments, kinds, strict=False)))


_GO_NAMES: dict[object, str] = {str: "string", int: "int", bool: "bool", dict: "map[string]interface {}"}


def _fitting(name: str, value: Any, wanted: Any) -> Any:
    """Go converts nothing: an int64 of the data is no int, a number no string."""
    if wanted is object or type(value) is wanted:
        return value
    if wanted is dict and value is None:
        return {}
    raise TemplateError(f"{name}: expected {_GO_NAMES[wanted]}; got {values.type_name(value)}")


def _function(name: str, call: Callable[..., Any]) -> Function:
    hints = typing.get_type_hints(call)
    parameters = inspect.signature(call).parameters.values()
    positional = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    rest = next((hints[each.name] for each in parameters if each.kind is each.VAR_POSITIONAL), None)
    return Function(
        name=name,
        call=call,
        parameters=tuple(typing.get_origin(hints[each.name]) or hints[each.name] for each in positional),
        rest=rest,
        required=len(positional),
    )


TABLE: dict[str, Function] = {
    name: _function(name, call) for name, call in {**text_functions.TABLE, **data_functions.TABLE}.items()
}
