"""What follows once an end is recorded: it is counted, logged and told of. Or it was refused, and that is said."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from time import monotonic

from jobq.events import EndsCallback, JobEnds, tell
from jobq.model import State
from jobq.verdict import word_of
from jobq.worker.entries import Entry
from jobq.worker.held import Held, HeldJobs
from jobq.worker.joblog import JobLog
from jobq.worker.stats import Counters

logger = logging.getLogger("jobq.worker")


class RecordedEnds:
    """From here on these jobs are not held."""

    def __init__(self, counters: Counters, held: HeldJobs) -> None:
        self.on_freed: Callable[[timedelta], None] = lambda wait: None  # called when a slot was freed
        self.on_ends: Sequence[EndsCallback] = ()  # called with the ends that are recorded together
        self.on_recorded: Callable[[Iterable[int]], None] = lambda ids: None  # called with jobs that ended for good
        self._counters = counters
        self._held = held
        self._log = JobLog()

    def done(self, group: Sequence[Held], mine: set[int] | None) -> None:
        """Jobs that ended well, and the ids of those whose end was ours to write; None: of all."""
        if mine is None or len(mine) == len(group):
            self._ended_well(group, [held.job.id for held in group])
        else:
            self._ended_well([held for held in group if held.job.id in mine], mine)
            for held in group:
                if held.job.id not in mine:
                    self._refused(held)
        self._held.drop_all(group)

    def written(self, entry: Entry, is_mine: bool) -> None:
        """An end that was written by itself, or only its slot freed."""
        if entry.ending.slot_wait is not None:
            self.on_freed(entry.ending.slot_wait)
        if entry.verdict is not None and is_mine:
            self._ended(entry, entry.verdict.word, entry.verdict.outcome)
        elif entry.verdict is not None:
            self._refused(entry.held)
        self._held.drop(entry.held)

    def _ended_well(self, group: Iterable[Held], ids: Iterable[int]) -> None:
        for outcome, number in Counter([held.outcome for held in group]).items():
            self._counters.count(word_of(outcome), number)
        for held in group:
            if self._log.is_full:
                break
            self._log.ended(held, word_of(held.outcome), held.outcome)
        self.on_recorded(ids)
        if self.on_ends:
            for ends in _ends_of(group):
                tell(self.on_ends, ends)

    def _ended(self, entry: Entry, word: str, outcome: str | None) -> None:
        self._counters.count(word)
        self._log.ended(entry.held, word, outcome)
        if entry.ending.state is not State.PENDING:
            self.on_recorded([entry.held.job.id])
        if self.on_ends:
            wait, duration = _seconds(entry.held, monotonic())
            tell(self.on_ends, JobEnds(entry.held.job.queue, entry.held.job.kind, word, [wait], [duration]))

    def _refused(self, held: Held) -> None:
        self._counters.refused += 1
        logger.warning(
            "job %d (%s): the lease was lost, another hand has the job; the result of attempt %d is dropped",
            held.job.id,
            held.job.kind,
            held.job.attempt,
        )


def _ends_of(group: Iterable[Held]) -> list[JobEnds]:
    """Of jobs that ended well. A value for each end, its spans as timedelta, took a tenth of what a quick job costs."""
    now = monotonic()
    spans: dict[tuple[str, str, str], tuple[list[float], list[float]]] = {}
    for held in group:
        key = held.job.queue, held.job.kind, word_of(held.outcome)  # by the word: texts may be as many as jobs
        if (found := spans.get(key)) is None:
            found = spans[key] = [], []
        wait, duration = _seconds(held, now)
        found[0].append(wait)
        found[1].append(duration)
    return [JobEnds(*key, *found) for key, found in spans.items()]


def _seconds(held: Held, now: float) -> tuple[float, float]:
    """It waited, and took. The server's clock may have been set back between."""
    return max(0.0, held.job.waited.total_seconds()), now - held.started
