"""Executors by their names: jobq's own, and those that installed packages bring."""

from __future__ import annotations

import os
from importlib.metadata import EntryPoint, entry_points

from jobq.errors import JobqError, WorkerError
from jobq.executors.base import Executor
from jobq.executors.setup import Setup

GROUP = "jobq.executors"
OWN = (
    EntryPoint("dask", "jobq.executors.dask:dask_executor", GROUP),
    EntryPoint("process", "jobq.executors.process:process_executor", GROUP),
)
PROMISED = ("run", "left_behind", "close")


def known_executors() -> set[str]:
    """The names of executors that can be made here."""
    return {point.name for point in (*OWN, *entry_points(group=GROUP))}


def make_executor(setup: Setup) -> Executor | None:
    """The executor of this name; None when nobody knows one. Raises: WorkerError, and what its factory says by one."""
    point = _entry_point(setup.name)
    if point is None:
        return None
    try:
        executor = point.load()(setup)
    except JobqError:
        raise
    except Exception as error:
        raise WorkerError(f"{_said(point)} cannot be made: {type(error).__name__}: {error}") from error
    if missing := [name for name in PROMISED if not hasattr(executor, name)]:
        what = type(executor).__name__
        raise WorkerError(f"{_said(point)} is none: its factory gave a {what}, which has no {', '.join(missing)}")
    return executor  # type: ignore[no-any-return]


def options_from_environment(name: str) -> dict[str, str]:
    """JOBQ_RAY_ADDRESS is the option `address` of an executor "ray"."""
    prefix = f"JOBQ_{''.join(letter if letter.isalnum() else '_' for letter in name.upper())}_"
    return {key.removeprefix(prefix).lower(): value for key, value in os.environ.items() if key.startswith(prefix)}


def _entry_point(name: str) -> EntryPoint | None:
    """jobq's own names are its own: a package cannot take them over unseen."""
    if own := [point for point in OWN if point.name == name]:
        return own[0]
    found = {point.value: point for point in entry_points(group=GROUP, name=name)}
    if len(found) > 1:
        raise WorkerError(
            f"several packages bring an executor {name!r} ({', '.join(sorted(found))}): remove all but one,"
            " or give the worker one with executors={...}"
        )
    return next(iter(found.values()), None)


def _said(point: EntryPoint) -> str:
    package = f" of the package {point.dist.name}" if point.dist is not None else ""
    return f"the executor {point.name!r}{package} ({point.value})"
