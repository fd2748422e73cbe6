"""An exception as text that can always be stored: bounded, without NUL or lone surrogates."""

from __future__ import annotations

import json
import re
import traceback
from types import TracebackType
from typing import Any

from jobq.masking import mask

LONGEST_TEXT = 2_000
LONGEST_TRACEBACK = 16_000


class RemoteTraceback(Exception):
    """The cause of an exception from another process: where it was raised there, as text."""


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str, limit: int = LONGEST_TEXT) -> str:
    """The text as PostgreSQL can hold it: NUL and lone surrogates as U+FFFD, its middle left out past `limit`.

    One such character would make the database refuse the whole batch of outcomes that it stands in. The values of
    secret arguments are left out.
    """
    text = mask(text)
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]} ... ({len(text) - 2 * half} characters left out) ... {text[-half:]}"
    return _UNSTORABLE.sub("\ufffd", text)


def describe(error: BaseException, *, attempt: int, worker: str) -> dict[str, Any]:
    """One failed attempt as an object for `jobs.errors`; the database adds the time."""
    error = _true_error(error)
    return {
        "attempt": attempt,
        "worker": worker,
        "error": storable(class_name(error), 200),
        "message": storable(message_of(error)),
        "traceback": storable(_traceback_of(error), LONGEST_TRACEBACK),
    }


def class_name(error: BaseException) -> str:
    """`ValueError`, `shop.errors.CardDeclined`: builtins without their module."""
    kind = type(_true_error(error))
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def message_of(error: BaseException) -> str:
    """`str(error)`, also for exceptions whose `__str__` raises."""
    try:
        return mask(str(_true_error(error)))
    except BaseException as broken:  # a SystemExit from here would end the worker's loop
        return f"<no text: __str__ raised {type(broken).__name__}>"


def as_json(value: Any) -> str:
    """JSON text for a jsonb column, from values that `storable` has been over."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def release_frames(error: BaseException) -> None:
    """Drop what a described exception keeps alive: the locals of the frames it went through, and of its causes.

    Left alone, an exception held in a local of its own frame is a cycle that only the collector would free.
    """
    seen: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        one = rest.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        rest += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            rest += one.exceptions
        traceback.clear_frames(one.__traceback__)
        BaseException.with_traceback(one, None)  # an exception may refuse to have an attribute set (a frozen dataclass)


def _true_error(error: BaseException) -> BaseException:
    """Python turns a StopIteration that leaves a coroutine into a RuntimeError; the handler raised the former."""
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
        return error.__cause__
    return error


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from where jobq's own frames end; all of it where nothing else follows."""
    part = trace
    while part is not None and part.tb_frame.f_globals.get("__name__", "").startswith("jobq."):
        part = part.tb_next
    return trace if part is None else part


def _traceback_of(error: BaseException) -> str:
    if type(error.__cause__) is RemoteTraceback:
        return str(error.__cause__)
    try:
        return "".join(traceback.format_exception(type(error), error, _users_part(error.__traceback__), limit=-30))
    except BaseException as broken:  # hostile __repr__, __notes__ ...
        return f"<no traceback: formatting it raised {type(broken).__name__}>"
