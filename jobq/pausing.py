"""What in an error tells a queue to stand still (`pause_on`): the HTTP status, of whichever client raised it.

Errors of httpx, requests, aiohttp and urllib are told by their attributes: none of these is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from jobq.errors import OptionError, OptionTypeError
from jobq.outcomes import LONGEST_PAUSE, PauseQueue

PauseOn: TypeAlias = Callable[[BaseException], "timedelta | PauseQueue | None"]
"""`error -> for how long the queue stands still`, or a PauseQueue with its reason; None: no pause, the job fails."""


@dataclass(frozen=True, slots=True)
class OnStatus:
    """Pauses for `duration` when the error carries one of `statuses`."""

    statuses: frozenset[int]
    duration: timedelta

    def __call__(self, error: BaseException, /) -> PauseQueue | None:
        status = status_of(error)
        return PauseQueue(self.duration, f"HTTP {status}") if status in self.statuses else None


def http_status(statuses: Iterable[int], duration: timedelta) -> OnStatus:
    """For `pause_on`: pause the queue when a handler raises an HTTP client's error with one of these statuses.

    Raises: OptionError, OptionTypeError.
    """
    if not isinstance(statuses, Iterable):
        raise OptionTypeError(f"statuses: expected some ints, such as {{401, 403}}, got {statuses!r}")
    chosen = frozenset(_checked(status) for status in statuses)
    if not chosen:
        raise OptionError("statuses: one or more, such as {401, 403}, got none")
    if not isinstance(duration, timedelta):
        raise OptionTypeError(f"duration: expected a timedelta, got {type(duration).__name__}")
    if not timedelta(0) < duration <= LONGEST_PAUSE:
        raise OptionError(f"duration: more than 0 and at most {LONGEST_PAUSE.days} days, got {duration}")
    return OnStatus(chosen, duration)


def status_of(error: BaseException | None) -> int | None:
    """The HTTP status that an error carries: httpx and requests in its response, aiohttp and urllib in itself."""
    response = _attribute(error, "response")
    found = [_attribute(response, "status_code"), *(_attribute(error, name) for name in ("status", "code"))]
    return next((status for status in found if _is_status(status)), None)


def pause_after(pause_on: PauseOn, error: BaseException) -> PauseQueue | None:
    """What `pause_on` makes of an error. Raises: whatever it raises, TypeError for what is no answer."""
    answer = pause_on(error)
    if answer is None or isinstance(answer, PauseQueue):
        return answer
    return PauseQueue(answer)


def _attribute(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except Exception:  # a property of somebody's: httpx raises where there is no response yet
        return None


def _is_status(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599


def _checked(status: object) -> int:
    if not isinstance(status, int) or isinstance(status, bool):
        raise OptionTypeError(f"statuses: expected ints, got {type(status).__name__} {status!r}")
    if not _is_status(status):
        raise OptionError(f"statuses: from 100 to 599, got {status}")
    return int(status)
