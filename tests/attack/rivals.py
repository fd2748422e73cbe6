"""Connections that enqueue with the same unique key at once, again and again, whatever happens to the workers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle

from arena import Arena

RIVALS = 3
KEYS = ("one", "other")
PAUSE_SECONDS = 0.2
JOB_SECONDS = 0.3  # of each key, it is asked for every 0.4 s: mostly while its job runs


@contextmanager
def rivals(arena: Arena) -> Iterator[None]:
    """For the block. Raises at its end what an enqueue has raised."""
    is_over = threading.Event()

    def contend() -> None:
        for key in cycle(KEYS):
            list(racers.map(lambda key: arena.enqueue_unique(key, JOB_SECONDS), [key] * RIVALS))
            if is_over.wait(PAUSE_SECONDS):
                return

    with ThreadPoolExecutor(RIVALS) as racers, ThreadPoolExecutor(1) as starter:
        contest = starter.submit(contend)
        try:
            yield
        finally:
            is_over.set()
        contest.result()
