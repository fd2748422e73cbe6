"""What an expression stands for: dotted names that it may have, or a kind that is written out."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from jobq.checking.found import LIBRARY, UNKNOWN
from jobq.checking.scopes import Scope

HANDLER = frozenset({"every", "cron", "when"})  # the decorators above a handler that schedule it
DEEPEST = 20  # steps of assignments that are followed


@dataclass(frozen=True, slots=True)
class Target:
    """Neither: only a run would tell. `is_bare`: a `jobq.kind(...)`, whose args are JSON."""

    names: tuple[str, ...] = ()
    kind: str | None = None
    is_bare: bool = False


def resolve(node: Any, scope: Scope, steps: int = 0) -> Target:
    """What an expression stands for in its scope."""
    if steps > DEEPEST:
        return Target()
    if isinstance(node, ast.Name):
        return _of_name(node.id, scope, steps)
    if isinstance(node, ast.Attribute):
        base = resolve(node.value, scope, steps + 1)
        return Target(tuple(f"{name}.{node.attr}" for name in base.names))
    if isinstance(node, ast.NamedExpr):
        return resolve(node.value, scope, steps + 1)
    if isinstance(node, ast.Call):
        return _of_call(node, scope, steps)
    if (kind := handler_kind(node)) is not None:
        return Target(kind=kind)
    return Target()


def _of_name(name: str, scope: Scope, steps: int) -> Target:
    binding, where = scope.lookup(name)
    if isinstance(binding, tuple):
        return Target(binding)
    target = resolve(binding, where, steps + 1)
    if where.prefix is None:
        return target
    return Target((*target.names, f"{where.prefix}.{name}"), target.kind, target.is_bare)


def _of_call(node: ast.Call, scope: Scope, steps: int) -> Target:
    """`handler.options(...)`, `jobq.kind("...")`, `app.handler("...")(function)`."""
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr == "options":
        return resolve(func.value, scope, steps + 1)
    if (kind := _registered(func)) is not None:
        return Target(kind=kind)
    if is_jobq(resolve(func, scope, steps + 1), {"kind"}):
        written = literal_of(node.args[0], scope) if node.args else UNKNOWN
        return Target(kind=written if isinstance(written, str) else None, is_bare=True)
    return Target()


def handler_kind(node: Any) -> str | None:
    """The kind of a function that is decorated as a handler."""
    for decorator in getattr(node, "decorator_list", ()):
        if (kind := _registered(decorator)) is not None:
            return kind
    return None


def _registered(node: ast.expr) -> str | None:
    """The kind in `anything.handler("...")`."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "handler"
        and node.args
    ):
        kind = literal(node.args[0])
        return kind if isinstance(kind, str) else None
    return None


def is_jobq(target: Target, names: Collection[str]) -> bool:
    """Whether it is one of these functions, of the library or of one of its modules."""
    parts = [name.split(".") for name in target.names]
    return any(each[0] == LIBRARY and len(each) > 1 and each[-1] in names for each in parts)


def schedule_of(node: ast.expr, scope: Scope) -> bool:
    """Whether an expression is `jobq.every(...)` or its kin, or a name for one."""
    for _ in range(DEEPEST):
        if isinstance(node, ast.Call):
            return is_jobq(resolve(node.func, scope), HANDLER)
        if not isinstance(node, ast.Name):
            return False
        binding, scope = scope.lookup(node.id)
        if not isinstance(binding, ast.expr):
            return False
        node = binding
    return False


def literal_of(node: ast.expr, scope: Scope) -> Any:
    """The value of a literal, also through names that are assigned once, else UNKNOWN."""
    for _ in range(DEEPEST):
        if not isinstance(node, ast.Name):
            return literal(node)
        binding, scope = scope.lookup(node.id)
        if not isinstance(binding, ast.expr):
            return UNKNOWN
        node = binding
    return UNKNOWN


def literal(node: ast.expr) -> Any:
    """The value of a literal, else UNKNOWN."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return UNKNOWN
