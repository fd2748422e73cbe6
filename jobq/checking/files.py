"""Reading the sources of a project."""

from __future__ import annotations

import os
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobq.callsite import LIBRARIES, is_project
from jobq.checking.calls import find_calls
from jobq.checking.found import Found
from jobq.checking.sql import find_sql

SKIPPED = frozenset({"node_modules", "__pycache__", "build", "dist", "tests", "test", *LIBRARIES})
IS_TEST = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py")


@dataclass(slots=True)
class Sources:
    """What the files say; `unread`: those that could not be parsed, with the reason."""

    found: list[Found] = field(default_factory=list)
    files: int = 0
    unread: list[str] = field(default_factory=list)


def project_of(file: str, module: str) -> Path:
    """The folder of a module's project: with a pyproject.toml or .git, else where its top-level package is.

    Of what is installed among libraries its package alone.
    """
    path = Path(file).absolute()
    top = path.parents[module.count(".") + (path.name == "__init__.py")]
    if any(parent.name in LIBRARIES for parent in path.parents):
        first = module.partition(".")[0]
        return top / first if (top / first).is_dir() else path
    return next((parent for parent in path.parents if is_project(parent)), top)


def read_sources(roots: Iterable[Path], search_path: Sequence[str], *, here: Path) -> Sources:
    """Everything in the Python and SQL files below the roots; paths are relative to `here` where they can be.

    Passed over, unless they are roots: hidden folders, environments, build results, libraries and tests, which may
    enqueue what nobody handles on purpose.
    """
    sources = Sources()
    for path in _files(roots):
        shown = os.path.relpath(path, here) if path.is_relative_to(here) else str(path)
        sources.files += 1
        try:
            sources.found += _found_in(path, shown, search_path)
        except (SyntaxError, UnicodeError, OSError, ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, SyntaxError) else str(error)
            line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            sources.unread.append(f"{shown}{line}: cannot be read: {' '.join(reason.split())}")
    return sources


def module_of(path: Path, search_path: Sequence[str]) -> str:
    """The dotted name that a file is imported under: of the folders that are searched the innermost counts."""
    folders = [Path(each or os.curdir).absolute() for each in search_path]
    roots = [each for each in folders if path.is_relative_to(each)]
    root = max(roots, key=lambda each: len(each.parts), default=path.parent)
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _found_in(path: Path, shown: str, search_path: Sequence[str]) -> list[Found]:
    if path.suffix == ".sql":
        return find_sql(path.read_text(errors="replace"), shown)
    with tokenize.open(path) as file:
        return find_calls(file.read(), shown, module=module_of(path, search_path))


def _files(roots: Iterable[Path]) -> Iterator[Path]:
    """Each file once, in order."""
    seen: set[Path] = set()
    for root in roots:
        for path in [root] if root.is_file() else _below(root):
            if path not in seen:
                seen.add(path)
                yield path


def _below(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(each for each in folders if not _is_skipped(Path(folder, each)))
        for name in sorted(files):
            if name.endswith(".sql") or (name.endswith(".py") and not IS_TEST.fullmatch(name)):
                yield Path(folder, name).absolute()


def _is_skipped(folder: Path) -> bool:
    is_environment = (folder / "pyvenv.cfg").exists()
    return folder.name.startswith(".") or folder.name in SKIPPED or folder.name.endswith(".egg-info") or is_environment
