"""file:line of the code that enqueued, relative to its project."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from types import FrameType

# What stands between an application and jobq: never the answer.
GLUE = frozenset({
    "jobq",
    "sqlalchemy",
    "greenlet",
    "gevent",
    "eventlet",
    "anyio",
    "sqlmodel",
    "flask_sqlalchemy",
    "advanced_alchemy",
})  # fmt: skip
STDLIB = Path(os.__file__).parent  # sysconfig says the same, after 3 ms of reading its own settings
LIBRARIES = frozenset({"site-packages", "dist-packages"})
ROOT_MARKS = ("pyproject.toml", "setup.py", ".git")


def callsite() -> str | None:
    """The first frame outside of jobq, SQLAlchemy, session glue and the standard library, such as `shop/orders.py:88`.

    None where there is no such frame (a bare executor), or when JOBQ_CALLSITE is 0.
    """
    if os.environ.get("JOBQ_CALLSITE") == "0":
        return None
    return nearest(sys._getframe()) or nearest_in_parents()


def nearest(frame: FrameType | None) -> str | None:
    while frame is not None:
        where = place(frame.f_code.co_filename, frame.f_globals.get("__name__"))
        if where is not None:
            return f"{where}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def nearest_in_parents() -> str | None:
    """Under `session.run_sync(jobq.enqueue, ...)` the caller's frames are those of the greenlet one up."""
    greenlet = sys.modules.get("greenlet")
    task = None if greenlet is None else greenlet.getcurrent().parent
    while task is not None:
        if (where := nearest(task.gr_frame)) is not None:
            return where
        task = task.parent
    return None


@cache
def place(file: str, module: str | None) -> str | None:
    """Where a frame's file is, relative to its project; None for a frame that is to be passed over."""
    if (module or "").partition(".")[0] in GLUE or file.startswith("<frozen"):
        return None
    if file.startswith("<"):  # <stdin>, <string>
        return file
    where = relative(Path(file).absolute())
    # A name that is not UTF-8 holds lone surrogates, which would abort the caller's transaction.
    return None if where is None else where.as_posix().encode(errors="replace").decode().replace("\0", "?")


def relative(path: Path) -> Path | None:
    """Relative to where it is installed, else to its project's root, else to its own folder."""
    installed = [parent for parent in path.parents if parent.name in LIBRARIES]
    if installed:
        return path.relative_to(installed[0])  # an application may be installed there too: not passed over
    if path.is_relative_to(STDLIB):
        return None
    return path.relative_to(next(filter(is_project, path.parents), path.parent))


def is_project(folder: Path) -> bool:
    return any(os.path.exists(folder / mark) for mark in ROOT_MARKS)
