"""How another process gets the application: by importing what the worker's own process has imported.

Only names of the program itself are imported, never one that stands in the database.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jobq.errors import WorkerError
from jobq.registry import App

MAIN = "__main__"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the App is, `module:attribute`, and the modules that the functions of its handlers elsewhere are in."""

    module: str
    attribute: str
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.module}:{self.attribute}"


def place_of(app: App, path: str | None, executor: str = "process") -> Place:
    """From `module:attribute`, where it is told, else by looking where the App is among the loaded modules.

    Raises: WorkerError, when another process could not import it.
    """
    functions = [handler.function for handler in app.handlers.values() if handler.executor == executor]
    others = tuple(dict.fromkeys(name for name in map(_module_of, functions) if name is not None))
    if path is not None:
        module, _, attribute = path.partition(":")
        return Place(module, attribute or "app", others)
    for known in dict.fromkeys([*others, *sys.modules]):
        if not _is_main(known) and (name := _name_in(known, app)) is not None:
            return Place(known, name, others)
    raise WorkerError(
        f'handlers with executor="{executor}" run in processes that import the application: make its App at the top'
        " level of a module that can be imported, not in __main__ or inside of a function, or say where it is with"
        ' app_path="module:attribute"'
    )


def application_at(place: Place) -> App:
    """The App, imported with its handlers. Raises whatever an import raises; TypeError, when it is no App."""
    app: Any = importlib.import_module(place.module)
    for name in place.attribute.split("."):
        app = getattr(app, name)
    for module in place.others:
        importlib.import_module(module)
    if not isinstance(app, App):
        raise TypeError(f"it is of type {type(app).__name__}, not a jobq.App")
    app.resolve()
    return app


def where(error: BaseException) -> str:
    """The line that failed, the deepest."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}:{frame.lineno}"


def needs_kinds(place: Place, wanted: Iterable[str], found: Iterable[str], who: str = "a child process") -> None:
    """Refuse handlers that another process has not found. Raises: WorkerError."""
    if missing := sorted(set(wanted) - set(found)):
        raise WorkerError(
            f"no handler for {', '.join(missing)} where {who} imports {place}: register handlers that run there when"
            " their module is imported, not in __main__ or inside of a function"
        )


def _module_of(function: Any) -> str | None:
    name = getattr(function, "__module__", None)
    return name if isinstance(name, str) and name in sys.modules and name != MAIN else None


def _is_main(module: str) -> bool:
    """Also by the other name that `multiprocessing` gives it when it is imported."""
    return module == MAIN or sys.modules.get(module) is sys.modules.get(MAIN)


def _name_in(module: str, app: App) -> str | None:
    """Under which name the App is a global of a loaded module."""
    known = getattr(sys.modules.get(module), "__dict__", {})
    return next((name for name, value in list(known.items()) if value is app), None)
