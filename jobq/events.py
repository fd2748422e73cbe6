"""What the worker tells an application: of errors (`app.on_error`), of the ends of jobs (`worker.on_end`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, TypeAlias, TypeVar

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


class JobEnd(NamedTuple):
    """The end of an attempt, once it is recorded. `word`: ok, fail, skip, dead, or where it goes back retry, snooze,
    pause.

    `wait`: from when the job was due to the claim; `duration`: from its start until now.
    """

    queue: str
    kind: str
    word: str
    wait: timedelta
    duration: timedelta


class JobEnds(NamedTuple):
    """Ends of one kind in one queue that were recorded together and have the same word; as JobEnd, in seconds each."""

    queue: str
    kind: str
    word: str
    waits: Sequence[float]
    durations: Sequence[float]

    def tell_each(self, callback: EndCallback) -> None:
        """Call it with each of them."""
        for wait, duration in zip(self.waits, self.durations, strict=True):
            spans = timedelta(seconds=wait), timedelta(seconds=duration)
            tell([callback], JobEnd(self.queue, self.kind, self.word, *spans))


E = TypeVar("E")
ErrorCallback: TypeAlias = Callable[[ErrorEvent], object]
EndCallback: TypeAlias = Callable[[JobEnd], object]
EndsCallback: TypeAlias = Callable[[JobEnds], object]


def tell(callbacks: Iterable[Callable[[E], object]], event: E) -> None:
    """Call each callback; what one raises is logged, never passed on: reporting must not change the job's fate."""
    for callback in callbacks:
        try:
            callback(event)
        except BaseException:  # a SystemExit from here would end the worker's loop
            logger.exception(
                "an on_error, on_end or on_ends callback raised; the job's own result is not touched by it"
            )
