"""Nothing that comes from the database becomes code: read from the source of all packages.

Each use of what could do that is listed here with its reason; a new one fails the test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = [ROOT / "jobq", ROOT / "cli" / "jobq_cli", ROOT / "alembic" / "jobq_migrations"]
MODULES = frozenset({
    *("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "copyreg", "yaml", "code", "codeop"),
    *("importlib", "imp", "runpy", "pkgutil", "zipimport", "ctypes"),
})  # fmt: skip
CALLS = frozenset({"eval", "exec", "compile", "__import__", "execfile"})
VERSION = "the version of an installed package: nothing is imported"
ALLOWED = {
    "jobq/__init__.py importlib.import_module": "the public names, from a table in that file",
    "jobq/child/__main__.py ctypes": "prctl, so that a child dies with its worker",
    "jobq/codec/annotations.py eval": "an annotation of the handler's own source, as typing.get_type_hints does it",
    "jobq/embedded/binaries.py importlib.util": "whether the package with PostgreSQL is installed, by a fixed name",
    "jobq/executors/finding.py importlib.metadata.EntryPoint": "an executor that a package brings; the name is code's",
    "jobq/executors/finding.py importlib.metadata.entry_points": "the same",
    "jobq/executors/process/place.py importlib": "the application that the worker was started with",
    "jobq/worker/membership.py importlib.metadata.version": VERSION,
    "cli/jobq_cli/bench/report.py importlib.metadata.version": VERSION,
    "cli/jobq_cli/commands/run.py importlib.util.find_spec": "whether uvloop is installed, by a fixed name",
    "cli/jobq_cli/commands/version.py importlib.metadata.version": VERSION,
    "cli/jobq_cli/lazy.py importlib.import_module": "the commands, from a table in app.py",
    "cli/jobq_cli/load.py importlib": "the application that the command line names",
}


def uses() -> Iterator[str]:
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            where = path.relative_to(ROOT).as_posix()
            yield from (f"{where} {what}" for what in uses_in(ast.parse(path.read_text())))


def uses_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in MODULES:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            yield node.func.id


def test_what_could_make_code_of_data_is_used_where_a_reason_is_given_and_nowhere_else() -> None:
    assert sorted(set(uses())) == sorted(ALLOWED)


@pytest.mark.parametrize(
    "line",
    ["import pickle", "from importlib import import_module", "import importlib.util", "eval(text)", "__import__(name)"],
)
def test_each_of_them_is_seen(line: str) -> None:
    assert list(uses_in(ast.parse(line)))


def test_ruff_looks_for_sql_made_of_text_and_nothing_in_the_packages_is_excused() -> None:
    assert '"S608"' in (ROOT / "pyproject.toml").read_text()
    excused = [path for package in PACKAGES for path in package.rglob("*.py") if "noqa: S608" in path.read_text()]
    assert excused == []
