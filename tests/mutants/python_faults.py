"""Faults in Python, made from its syntax tree: comparisons turned, guards taken away, statements left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.fault import Fault

_TURNED: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_UNHEARD = ("log.", "self._latency", "self._requests")  # what is told to people or to meters
_CHANGES = (ast.Attribute, ast.Subscript)  # an assignment to these is an effect; to a name, its absence is no subtle fault

Change = tuple[ast.AST, str]


def faults(path: str, text: str) -> list[Fault]:
    """All that can be planted in a module, in the order of its lines."""
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def at(line: int, column: int) -> int:
        start = lines[line - 1]
        return start + len(text[start : lines[line]].encode()[:column].decode())

    found = []
    for place, node, new in _walk(ast.parse(text), ""):
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
        found.append(Fault(path, place, start, end, new, text))
    return found


def _walk(node: ast.AST, place: str) -> Iterator[tuple[str, ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{place}.{child.name}".lstrip(".")
            yield from _walk(ast.Module(child.body, []), inner)
        elif place:
            yield from ((place, *change) for change in _changes(child))
            if not isinstance(child, ast.JoinedStr | ast.Raise | ast.Assert):  # what is said in a refusal is for people
                yield from _walk(child, place)


def _changes(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare(ops=[operator], comparators=[right]):
            yield node, f"({ast.unparse(node.left)} {_TURNED[type(operator)]} {ast.unparse(right)})"
        case ast.BoolOp(op=operator, values=values):
            other = " or " if isinstance(operator, ast.And) else " and "
            yield node, f"({other.join(f'({ast.unparse(value)})' for value in values)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"bool({ast.unparse(operand)})"
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test, "False"
            if not isinstance(node, ast.While):
                yield test, "True"
        case ast.comprehension(ifs=tests):
            yield from ((test, "True") for test in tests)
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=0 | 1 as value):
            yield node, str(1 - value)
        case ast.Continue() | ast.Delete() | ast.Break() | ast.AugAssign():
            yield node, "pass"
        case ast.Raise():
            yield node, "pass"
        case ast.Assign(targets=[target]) if isinstance(target, _CHANGES):
            yield node, "pass"
        case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            yield node, "yield from ()"
        case ast.Expr(value=ast.Call() | ast.Await()) if not ast.unparse(node).startswith(_UNHEARD):
            yield node, "pass"
