"""Traffic on some tables, and the longest that any of its statements had to wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

PAUSE_SECONDS = 0.002
CONTROL = "SELECT 1"  # waits for nobody's lock: what it takes is the machine's own
ON_JOBQ = (  # what enqueuing, claiming, ending and looking lock
    "INSERT INTO jobq.jobs (kind) VALUES ('probe')",
    "UPDATE jobq.jobs SET meta = meta WHERE id = (SELECT max(id) FROM jobq.jobs) RETURNING id",
    "DELETE FROM jobq.jobs WHERE id = (SELECT max(id) FROM jobq.jobs WHERE kind = 'probe')",
    "SELECT FROM jobq.finished_jobs LIMIT 1 FOR UPDATE SKIP LOCKED",
    "SELECT FROM jobq.workers",
)


class Probe:
    """Each statement has a thread and a connection of its own, so that one that waits hides none of the others."""

    def __init__(self, url: str, statements: Sequence[str]) -> None:
        self._longest = dict.fromkeys([CONTROL, *statements], 0.0)
        self._url = url.replace("+psycopg", "")
        self._is_over = threading.Event()
        self._begun = threading.Barrier(len(self._longest) + 1)
        self._threads = [threading.Thread(target=self._repeat, args=[each]) for each in self._longest]

    @property
    def longest_seconds(self) -> float:
        """The longest wait, less what the machine alone has taken at its slowest."""
        return max(max(self._longest.values()) - self._longest[CONTROL], 0.0)

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()
        self._begun.wait(30)

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, statement: str) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(statement)
            self._begun.wait(30)
            while not self._is_over.wait(PAUSE_SECONDS):
                began = time.monotonic()
                connection.execute(statement)
                self._longest[statement] = max(self._longest[statement], time.monotonic() - began)


@contextmanager
def probing(url: str, statements: Sequence[str] = ON_JOBQ) -> Iterator[Probe]:
    """While the block runs; read `longest_seconds` after it."""
    probe = Probe(url, statements)
    probe.begin()
    try:
        yield probe
    finally:
        probe.end()
