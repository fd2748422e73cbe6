"""What the application that is loaded says: the kinds of names in its modules, and its schedules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from jobq.checking.found import Fault
from jobq.checking.judging import without_handler
from jobq.codec.functions import innermost
from jobq.errors import ArgsError
from jobq.handlers import Handler, Kind
from jobq.periodic import PeriodicJob


def named(modules: Mapping[str, ModuleType], handlers: Iterable[Handler[..., Any]]) -> dict[str, Kind[...]]:
    """All dotted names that stand for a kind, also those of classes' attributes and of decorated functions."""
    found: dict[str, Kind[...]] = {name: handler for handler in handlers for name in names_of(handler)}
    for module_name, module in list(modules.items()):
        for name, value in _attributes(module):
            if isinstance(value, Kind):
                found[f"{module_name}.{name}"] = value
    return found


def names_of(handler: Handler[..., Any]) -> Iterator[str]:
    """The dotted name that its function was defined under."""
    function = innermost(handler.function)
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module and name and "<" not in name:
        yield f"{module}.{name}"


def scheduled_faults(
    schedules: Mapping[str, PeriodicJob], handlers: Mapping[str, Handler[..., Any]]
) -> Iterator[Fault]:
    """What is wrong with the application's schedules: a `jobq.kind(...)` is not checked when it is registered."""
    for name, periodic in schedules.items():
        problem = _of_job(periodic, handlers)
        if problem is not None:
            path, _, line = periodic.place.rpartition(":")
            yield Fault(path, int(line), periodic.job.kind, f"schedule {name!r}: {problem}")


def _of_job(periodic: PeriodicJob, handlers: Mapping[str, Handler[..., Any]]) -> str | None:
    handler = handlers.get(periodic.job.kind)
    if handler is None:
        return without_handler(periodic.job.kind, handlers)
    try:
        handler.codec.decode(periodic.args)
    except ArgsError as error:
        return f"{handler.kind}: {error}"
    return None


def _attributes(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What a module's namespace holds, and its own classes'; nothing that is made when it is asked for."""
    for name, value in list(getattr(module, "__dict__", {}).items()):
        if issubclass(type(value), Kind):
            yield name, value
        elif type(value) is type and value.__module__ == module.__name__:
            yield from (
                (f"{name}.{inner}", each) for inner, each in vars(value).items() if issubclass(type(each), Kind)
            )
