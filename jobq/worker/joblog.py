"""One line for each job that ended, without letting a fast queue drown the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from jobq.masking import mask
from jobq.worker.held import Held

logger = logging.getLogger("jobq.job")
MOST_A_SECOND = 100
GOOD = frozenset({"ok", "skip", "fail", "snooze", "pause"})


class JobLog:
    """INFO up to 100 lines a second and process; above that good ends go to DEBUG, which is said once. Bad ends always
    are a WARNING (retry) or an ERROR (dead).

    `extra` fields of each record: queue, kind, job_id, attempt, outcome, wait, duration (seconds), worker_id.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._second = 0
        self._lines = 0
        self._said = False

    @property
    def is_full(self) -> bool:
        """Whether the line of a good end would not be seen right now."""
        if self._lines <= MOST_A_SECOND or not self._said or logger.isEnabledFor(logging.DEBUG):
            return False
        return int(self._clock()) == self._second

    def ended(self, held: Held, word: str, text: str | None) -> None:
        """Write the line of one job. `word`: ok, fail, skip, retry, dead, snooze, pause."""
        level = self._level(word)
        if not logger.isEnabledFor(level):
            return
        job = held.job
        wait, duration = max(job.waited.total_seconds(), 0.0), self._clock() - held.started
        fields = {
            "queue": job.queue,
            "kind": job.kind,
            "job_id": job.id,
            "attempt": job.attempt,
            "outcome": text or word,
            "wait": round(wait, 6),
            "duration": round(duration, 6),
            "worker_id": job.worker_id,
        }
        logger.log(
            level,
            "%s %s %d attempt %d: %s (waited %.3f s, took %.3f s)",
            job.queue,
            job.kind,
            job.id,
            job.attempt,
            _said(word, text),
            wait,
            duration,
            extra=fields,
        )

    def _level(self, word: str) -> int:
        if word not in GOOD:
            return logging.ERROR if word == "dead" else logging.WARNING
        second = int(self._clock())
        if second != self._second:
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines <= MOST_A_SECOND:
            return logging.INFO
        if not self._said:
            self._said = True
            logger.info("more than %d jobs a second: further good ends are logged at DEBUG", MOST_A_SECOND)
        return logging.DEBUG


def _said(word: str, text: str | None) -> str:
    """`ok: sent`, `retry: err: ValueError: no`, `snooze`."""
    if text is None:
        return word
    return one_line(text if text.startswith(word) else f"{word}: {text}")


def one_line(text: str, limit: int = 300) -> str:
    """Text of a handler's making as one printable line: a log is read by people and by their terminals."""
    text = mask(text)
    line = "".join(character if character.isprintable() else " " for character in text[:limit])
    return line + (" ..." if len(text) > limit else "")
