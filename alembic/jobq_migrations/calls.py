"""What a revision file of an application says to jobq: read from its text, nothing is run."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from jobq.tables import SCHEMA

PACKAGE, FUNCTION = "jobq_migrations", "upgrade"


class Upgrade(NamedTuple):
    """A call of `jobq_migrations.upgrade` whose arguments are written out."""

    schema: str
    to: str
    path: Path


def upgrades_in(path: Path) -> list[Upgrade]:
    """The upgrades that the file asks for, however it imports the function."""
    if path.suffix != ".py":
        return []  # Alembic's "sourceless" histories
    with tokenize.open(path) as file:
        text = file.read()
    if PACKAGE not in text:
        return []
    tree = ast.parse(text)
    names = set(_names(tree))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) in names]
    given = [_constants(call) for call in calls]
    return [Upgrade(str(words.get("schema", SCHEMA)), str(words["to"]), path) for words in given if "to" in words]


def _constants(call: ast.Call) -> dict[str | None, object]:
    return {word.arg: word.value.value for word in call.keywords if isinstance(word.value, ast.Constant)}


def _names(tree: ast.Module) -> Iterator[str]:
    """What the file may call the function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias.asname or alias.name for alias in node.names if alias.name == PACKAGE]
            yield from (f"{name}.{FUNCTION}" for name in found)
        elif isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
            yield from (alias.asname or alias.name for alias in node.names if alias.name == FUNCTION)
