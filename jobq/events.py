"""What the worker tells an application about errors (`app.on_error`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from jobq.context import CurrentJob

logger = logging.getLogger("jobq")


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """A failed attempt, or (`job` None) the first of a run of failures of one of the worker's own loops.

    `final`: the job will not be retried. `error` keeps its traceback only while the callback runs.
    """

    job: CurrentJob | None
    error: BaseException
    attempt: int | None
    final: bool


ErrorCallback: TypeAlias = Callable[[ErrorEvent], object]


def tell(callbacks: Iterable[ErrorCallback], event: ErrorEvent) -> None:
    """Call each callback; what one raises is logged, never passed on: reporting must not change the job's fate."""
    for callback in callbacks:
        try:
            callback(event)
        except BaseException:  # a SystemExit from here would end the worker's loop
            logger.exception("an on_error callback raised; the job's own result is not touched by it")
