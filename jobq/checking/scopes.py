"""What a name in a module's source stands for: imports, definitions, and names that are assigned once."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

# Dotted names that it may have; the expression that it was assigned; None for what only a run would tell.
Binding: TypeAlias = "tuple[str, ...] | ast.expr | ast.AST | None"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NESTED = (*FUNCTIONS, ast.ClassDef, ast.Lambda)


@dataclass(slots=True)
class Scope:
    """The names of a module, a function or a class body. `prefix`: of the dotted names of what is defined here."""

    module: str
    package: str
    prefix: str | None
    parent: Scope | None = None
    bindings: dict[str, Binding] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    is_class: bool = False

    def lookup(self, name: str) -> tuple[Binding, Scope]:
        """What the name is bound to, and where."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.bindings:
                return scope.bindings[name], scope
            if scope.parent is None:
                return tuple(f"{star}.{name}" for star in scope.stars), scope
            scope = scope.parent
        return None, self


def module_scope(tree: ast.Module, module: str, *, is_package: bool) -> Scope:
    """The scope of a whole file."""
    package = module if is_package else module.rpartition(".")[0]
    scope = Scope(module, package, module)
    _bind_body(scope, tree.body)
    return scope


def inner_scope(node: ast.AST, outer: Scope) -> Scope:
    """The scope of a function's or a class's body; what a class binds is not seen in its methods."""
    visible = outer.parent if outer.is_class and outer.parent is not None else outer
    prefix = f"{outer.prefix}.{node.name}" if isinstance(node, ast.ClassDef) and outer.prefix else None
    scope = Scope(outer.module, outer.package, prefix, visible, is_class=isinstance(node, ast.ClassDef))
    scope.bindings.update(dict.fromkeys(_parameters(node)))
    _bind_body(scope, _body(node))
    return scope


def _parameters(node: ast.AST) -> list[str]:
    arguments = getattr(node, "args", None)
    if not isinstance(arguments, ast.arguments):
        return []
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return [each.arg for each in every if each is not None]


def _body(node: ast.AST) -> list[ast.stmt]:
    body = getattr(node, "body", [])
    return body if isinstance(body, list) else []  # a lambda's is an expression


def _bind_body(scope: Scope, body: Iterable[ast.stmt]) -> None:
    for node in _statements_of(body):
        for name, binding in _bound_by(node, scope):
            is_new = name not in scope.bindings or isinstance(binding, tuple) or isinstance(node, FUNCTIONS)
            scope.bindings[name] = binding if is_new else None


def _statements_of(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a body, but for what is inside of nested functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, NESTED):
            yield from _statements_of(ast.iter_child_nodes(node))


def _bound_by(node: ast.AST, scope: Scope) -> Iterator[tuple[str, Binding]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield (alias.asname, (alias.name,)) if alias.asname else _first(alias.name)
    elif isinstance(node, ast.ImportFrom):
        yield from _imported_from(node, scope)
    elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        yield node.name, (f"{scope.prefix}.{node.name}",) if scope.prefix else node
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        yield node.targets[0].id, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value
    elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield from _stored(node, scope)
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name, None


def _stored(node: ast.Name, scope: Scope) -> Iterator[tuple[str, Binding]]:
    """A target of a loop, a `with`, an unpacking ...: of a plain assignment it has been seen with its value."""
    known = scope.bindings.get(node.id)
    if not (isinstance(known, ast.expr) and _follows(node, known)):
        yield node.id, None


def _follows(node: ast.Name, value: ast.expr) -> bool:
    return (value.lineno, value.col_offset) > (node.lineno, node.col_offset)


def _first(name: str) -> tuple[str, Binding]:
    first = name.partition(".")[0]
    return first, (first,)


def _imported_from(node: ast.ImportFrom, scope: Scope) -> Iterator[tuple[str, Binding]]:
    base = _base(node, scope.package)
    for alias in node.names:
        if alias.name == "*":
            scope.stars.append(base)
        else:
            yield alias.asname or alias.name, (f"{base}.{alias.name}".lstrip("."),)


def _base(node: ast.ImportFrom, package: str) -> str:
    """The module that is imported from, also by dots."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])
