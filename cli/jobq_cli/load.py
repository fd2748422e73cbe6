"""Finding the application that a command names as `module:attribute`."""

from __future__ import annotations

import importlib
import os
import re
import sys
import traceback
from types import ModuleType
from typing import Any

from jobq.registry import App, Registry
from jobq_cli.failures import Failed

FORM = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def hint(text: str) -> str | None:
    """What is wrong with the form of a place, and how it is written; None when it is right."""
    if FORM.fullmatch(text):
        return None
    if text.partition(":")[0].endswith(".py") or "/" in text:
        module = ".".join(part for part in text.partition(":")[0].removesuffix(".py").split("/") if part.strip("."))
        return f"{text!r} is a file: write the module, {module or 'module'}:{text.partition(':')[2] or 'app'}"
    if FORM.fullmatch(f"{text}:app"):
        return f"{text!r} names no attribute: write module:attribute, such as {text}:app"
    return f"{text!r}: write module:attribute, such as shop.jobs:app"


def load_app(place: str, folder: str | os.PathLike[str] | None = None) -> App:
    """The App at `module:attribute`; the folder is searched first, else the working directory, as `python` does it.

    Raises: Failed, in one line that names the import error and where it happened.
    """
    name, _, attribute = place.partition(":")
    module = _imported(name, os.fspath(folder or os.getcwd()))
    app = _attribute(module, attribute)
    if not isinstance(app, App):
        raise Failed(f"{place} is {_described(app)}, not a jobq.App{_apps_in(module)}")
    if not app.handlers:
        raise Failed(f"{place} has no handlers (does it import the modules that register them?)")
    return app


def _imported(name: str, here: str) -> ModuleType:
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {_message(error)}"
        raise Failed(f"cannot import {name}: {what} ({_place(error) or f'looked in {here}'})") from error


def _message(error: BaseException) -> str:
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return " ".join(said.split())


def _place(error: BaseException) -> str | None:
    """The line of the user's own code that failed, the deepest; of other code where there is none of theirs."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_short(error.filename)}:{error.lineno}"
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    foreign = [each for each in frames if not each[0].startswith("<frozen") and not _is_machinery(each[0])]
    own = [each for each in foreign if _is_here(each[0])]
    deepest = (own or foreign)[-1:]
    return f"{_short(deepest[0][0])}:{deepest[0][1]}" if deepest else None


def _is_machinery(path: str) -> bool:
    return path in (__file__, importlib.__file__)


def _is_here(path: str) -> bool:
    return path.startswith(os.getcwd() + os.sep) and "site-packages" not in path


def _short(path: str) -> str:
    return os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path


def _attribute(module: ModuleType, attribute: str) -> Any:
    found: Any = module
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise Failed(f"module {module.__name__} has no attribute {attribute!r}{_apps_in(module)}")
        found = getattr(found, name)
    return found


def _described(found: Any) -> str:
    if isinstance(found, Registry):
        return "a jobq.Registry (an app takes it over with app.include)"
    return f"of type {type(found).__name__}"


def _apps_in(module: ModuleType) -> str:
    names = sorted(name for name, value in vars(module).items() if isinstance(value, App))
    return f" (an App there: {', '.join(f'{module.__name__}:{name}' for name in names)})" if names else ""
