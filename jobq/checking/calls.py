"""Finding what a Python source enqueues, by its syntax tree alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from jobq.checking.found import LIBRARY, UNKNOWN, Arguments, Found, What
from jobq.checking.resolving import HANDLER, Target, handler_kind, is_jobq, literal, resolve, schedule_of
from jobq.checking.scopes import NESTED, Scope, inner_scope, module_scope
from jobq.checking.sql import GAP, find_sql

ONE = frozenset({"enqueue", "enqueue_async"})
MANY = frozenset({"enqueue_many", "enqueue_many_async"})
SELECT = frozenset({"enqueue_select", "enqueue_select_async"})
ENQUEUES = ONE | MANY | SELECT
TABLE = f"{LIBRARY}.tables.jobs"


def find_calls(source: str, path: str, *, module: str | None = None) -> list[Found]:
    """Everything in a source that names a kind, in the order of the lines.

    `module` is its dotted name, by itself that of the path. Raises: SyntaxError.
    """
    tree = ast.parse(source, path)
    name = ".".join(PurePath(path).with_suffix("").parts) if module is None else module
    is_package = PurePath(path).name == "__init__.py"
    name = name.removesuffix(".__init__")
    found = list(Finder(path).of_module(tree, module_scope(tree, name, is_package=is_package)))
    return sorted(found, key=lambda each: each.line)


class Finder:
    """Walks one module. What it yields has no values that only a run would tell."""

    def __init__(self, path: str) -> None:
        self._path = path

    def of_module(self, tree: ast.Module, scope: Scope) -> Iterator[Found]:
        for name, binding in scope.bindings.items():
            if scope.prefix and not _is_defined(binding, scope, name):
                yield from self._alias(f"{scope.prefix}.{name}", binding, scope)
        for node in tree.body:
            yield from self._of(node, scope)

    def _alias(self, name: str, binding: Any, scope: Scope) -> Iterator[Found]:
        """Another name for a handler: an import, or an assignment."""
        target = Target(binding) if isinstance(binding, tuple) else resolve(binding, scope)
        if target.names or target.kind:
            yield Found(self._path, 0, What.ALIAS, (name, *target.names), target.kind, as_json=target.is_bare)

    def _of(self, node: ast.AST, scope: Scope) -> Iterator[Found]:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node, NESTED):
            yield from self._definition(node, scope)
            return
        if isinstance(node, ast.Call):
            yield from self._call(node, scope)
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            yield from self._text(node)
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)):
                yield from self._of(child, scope)

    def _definition(self, node: Any, scope: Scope) -> Iterator[Found]:
        """A function or class: what stands around it is of this scope, its body of its own."""
        kind = handler_kind(node)
        if kind is not None:
            names = (f"{scope.prefix}.{node.name}",) if scope.prefix else ()
            yield Found(self._path, node.lineno, What.HANDLER, names, kind)
            yield from (
                Found(self._path, each.lineno, What.SCHEDULE, names, kind)
                for each in node.decorator_list
                if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in HANDLER
            )
        inside = inner_scope(node, scope)
        body = node.body if isinstance(node.body, list) else [node.body]
        for child in ast.iter_child_nodes(node):
            yield from self._of(child, inside if child in body else scope)

    def _call(self, node: ast.Call, scope: Scope) -> Iterator[Found]:
        called = resolve(node.func, scope)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "run_sync" and node.args:
            called = resolve(node.args[0], scope)  # session.run_sync(jobq.enqueue, handler, ...)
        if (name := _enqueues(called)) is not None:
            through = () if is_jobq(called, ENQUEUES) else called.names
            yield from (replace(each, function=through) for each in self._enqueue(node, scope, name))
        elif is_jobq(called, {"kind"}):
            target = resolve(node, scope)
            yield self._found(node, What.KIND, target)
        elif isinstance(node.func, ast.Attribute):
            yield from self._method(node, node.func, scope)

    def _enqueue(self, node: ast.Call, scope: Scope, name: str) -> Iterator[Found]:
        if len(node.args) < 2 or any(isinstance(each, ast.Starred) for each in node.args[:2]):
            yield self._found(node, What.ENQUEUE, Target())
            return
        target = resolve(node.args[1], scope)
        args = _arguments(node.args[2:], node.keywords) if name in ONE else None
        yield self._found(node, What.ENQUEUE, target, args)
        if name in MANY and len(node.args) > 2:
            for row in _rows(node.args[2]):
                yield self._found(row, What.ARGS, target, _of_dict(row))

    def _method(self, node: ast.Call, method: ast.Attribute, scope: Scope) -> Iterator[Found]:
        """`handler.args(...)`, `app.schedule(...)`, `insert(jobs).values(...)`."""
        if method.attr == "args":
            target = resolve(method.value, scope)
            if target.names or target.kind:
                yield self._found(node, What.ARGS, target, _arguments(node.args, node.keywords))
        elif method.attr == "schedule" and len(node.args) >= 2 and schedule_of(node.args[0], scope):
            target = resolve(node.args[1], scope)
            yield self._found(node, What.SCHEDULE, target, _arguments(node.args[2:], node.keywords))
        elif method.attr == "values" and _inserts_jobs(method.value, scope):
            kinds = [literal(each.value) for each in node.keywords if each.arg == "kind"]
            kind = kinds[0] if kinds and isinstance(kinds[0], str) else None
            yield self._found(node, What.SQL, Target(kind=kind))

    def _text(self, node: ast.Constant | ast.JoinedStr) -> Iterator[Found]:
        text = node.value if isinstance(node, ast.Constant) else _of_parts(node)
        if isinstance(text, str):
            for each in find_sql(text, self._path):
                line = node.lineno + each.line - 1 if node.end_lineno != node.lineno else node.lineno
                yield replace(each, line=line)

    def _found(self, node: ast.AST, what: What, target: Target, args: Arguments | None = None) -> Found:
        line = getattr(node, "lineno", 0)
        return Found(self._path, line, what, target.names, target.kind, args, as_json=target.is_bare)


def _enqueues(called: Target) -> str | None:
    """Which of the functions that enqueue is called, by its last name."""
    lasts = (name.rpartition(".")[2] for name in called.names if "." in name)
    return next((last for last in lasts if last in ENQUEUES), None)


def _is_defined(binding: Any, scope: Scope, name: str) -> bool:
    return binding is None or binding == (f"{scope.prefix}.{name}",)


def _arguments(positional: list[ast.expr], keywords: list[ast.keyword]) -> Arguments:
    plain = [each for each in positional if not isinstance(each, ast.Starred)]
    named = {each.arg: literal(each.value) for each in keywords if each.arg is not None}
    is_whole = len(plain) == len(positional) and len(named) == len(keywords)
    if len(plain) < len(positional):  # what stands behind a * has no known place
        plain = []
    return Arguments(tuple(literal(each) for each in plain), named, is_whole)


def _rows(node: ast.expr) -> Iterator[ast.Dict]:
    """The rows of enqueue_many that are written as dicts; `handler.args(...)` is found by itself."""
    if isinstance(node, (ast.List, ast.Tuple)):
        yield from (each for each in node.elts if isinstance(each, ast.Dict))
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)) and isinstance(node.elt, ast.Dict):
        yield node.elt


def _of_dict(node: ast.Dict) -> Arguments:
    pairs = [
        (literal(key) if key else UNKNOWN, literal(value)) for key, value in zip(node.keys, node.values, strict=True)
    ]
    named = {key: value for key, value in pairs if isinstance(key, str)}
    return Arguments((), named, is_whole=len(named) == len(pairs))


def _of_parts(node: ast.JoinedStr) -> str:
    """The text of an f-string, with a mark where a value goes in."""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else GAP for part in node.values)


def _inserts_jobs(node: ast.expr, scope: Scope) -> bool:
    """`insert(jobs)`, `sa.insert(jobq.tables.jobs)`, `jobs.insert()`."""
    if not isinstance(node, ast.Call):
        return False
    func = node.func
    name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else None
    if name != "insert":
        return False
    table = node.args[0] if node.args else func.value if isinstance(func, ast.Attribute) else None
    return table is not None and TABLE in resolve(table, scope).names
