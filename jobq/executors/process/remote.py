"""An exception of a child process, made again in the worker, so that policies can look at it.

Its class is looked for among the modules that the worker has loaded already: a name that a child says is never
imported. The object is made without `__init__`, which may want anything.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from jobq.describe import RemoteTraceback, message_of


def rebuilt(
    classes: Iterable[list[str]],
    message: str,
    traceback: str,
    args: list[Any] | None,
    attributes: dict[str, Any],
    status: int | None,
) -> BaseException:
    """An instance of the first of these classes that can be had here, under the name of the very first."""
    names = list(classes)
    error = _exact(names[0], message, args, attributes) or _renamed(names, message, args, attributes)
    error.__cause__ = RemoteTraceback(traceback)
    if status is not None:
        vars(error).setdefault("status", status)  # a response cannot cross, what `http_status` reads of it can
    return error


def _exact(name: list[str], message: str, args: list[Any] | None, attributes: dict[str, Any]) -> BaseException | None:
    """None where the class is not known here, or does not say the same."""
    kind = _loaded(*name)
    if kind is None or args is None:
        return None
    error = _made(kind, args, attributes)
    return error if error is not None and message_of(error) == message else None


def _renamed(names: list[list[str]], message: str, args: list[Any] | None, attributes: dict[str, Any]) -> BaseException:
    """Of a class of its own below the nearest one that is known here, with the name and the text of the original."""
    module, qualname = names[0]
    body = {"__module__": module, "__qualname__": qualname, "__str__": lambda _: message, "__slots__": ()}
    for name in names:
        if (base := _loaded(*name)) is None:
            continue
        with suppress(Exception):  # a metaclass, or __init_subclass__, that does not want it
            kind: Any = types.new_class(
                qualname.rpartition(".")[2], (base,), exec_body=lambda names: names.update(body)
            )
            if (error := _made(kind, args or [message], attributes)) is not None:
                return error
    raise AssertionError("no class of an exception")  # BaseException itself is among the names, and always here


def _made(kind: type[BaseException], args: list[Any], attributes: dict[str, Any]) -> BaseException | None:
    try:
        error = kind.__new__(kind, *args)
        vars(error).update({name: _value(value) for name, value in attributes.items()})
    except Exception:
        return None
    return error


def _value(value: Any) -> Any:
    return timedelta(seconds=value["seconds"]) if isinstance(value, dict) else value


def _loaded(module: str, qualname: str) -> type[BaseException] | None:
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    return found if isinstance(found, type) and issubclass(found, BaseException) else None
