"""Which tests there are, for the tables that name some."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent


@cache
def names() -> frozenset[str]:
    """The names of all test functions."""
    trees = [ast.parse(path.read_text()) for path in TESTS.rglob("test_*.py")]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node.name for tree in trees for node in ast.walk(tree) if isinstance(node, functions)]
    return frozenset(name for name in found if name.startswith("test_"))
