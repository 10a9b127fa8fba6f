"""The changes that mutation testing makes to a module."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def changes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Make each change of a tree in place, one after the other; the tree is whole again after it.

    Yields:
        The line and the change, as long as it is made.
    """
    for parent, field, index, node in list(_nodes(tree)):
        for new, name in _replacements(node):
            _put(parent, field, index, ast.copy_location(new, node))
            ast.fix_missing_locations(parent)
            yield getattr(node, "lineno", getattr(parent, "lineno", 0)), name
            _put(parent, field, index, node)


def _nodes(parent: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """All nodes that may be changed, with their places: no annotations and no error messages."""
    for field, value in ast.iter_fields(parent):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        if isinstance(parent, ast.Raise | ast.JoinedStr | ast.Assert):
            continue
        nodes = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, node in nodes:
            if isinstance(node, ast.AST) and not _is_for_types(node):
                yield parent, field, index, node
                yield from _nodes(node)


def _is_for_types(node: ast.AST) -> bool:
    text = ast.unparse(node) if isinstance(node, ast.If | ast.AnnAssign) else ""
    return text.startswith("if TYPE_CHECKING") or ": TypeAlias =" in text


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def _replacements(node: ast.AST) -> Iterator[tuple[Any, str]]:
    text = f"`{ast.unparse(node):.60}`" if isinstance(node, ast.stmt | ast.expr) else ""
    match node:
        case ast.Compare() | ast.BinOp() | ast.BoolOp() | ast.AugAssign():
            yield from ((new, f"{text} -> `{ast.unparse(new):.60}`") for new in _swapped(node))
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand, f"{text} -> `{ast.unparse(operand):.60}`"
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value), f"{value} -> {not value}"
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1), f"{value} -> {value + 1}"
        case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Compare):
            new = copy.copy(node)
            new.test = ast.UnaryOp(ast.Not(), test)
            yield new, f"`{ast.unparse(test):.60}` -> not"
        case ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass(), f"without {text}"
        case ast.Expr(value=ast.Call()):
            yield ast.Pass(), f"without {text}"


def _swapped(node: Any) -> Iterator[ast.AST]:
    operators = node.ops if isinstance(node, ast.Compare) else [node.op]
    for i, operator in enumerate(operators):
        if type(operator) in SWAPS:
            new: Any = copy.copy(node)
            other = SWAPS[type(operator)]()
            if isinstance(node, ast.Compare):
                new.ops = [*operators[:i], other, *operators[i + 1 :]]
            else:
                new.op = other
            yield new
