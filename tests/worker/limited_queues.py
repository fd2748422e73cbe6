"""What runs of each queue at a time, and which slots are taken."""

from __future__ import annotations

from collections import Counter

import sqlalchemy as sa
from bench import Bench

import jobq
from jobq.tables import slots


class Running:
    """How many handlers of each queue run at a time, and the most there ever were."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.starts: list[tuple[str, int]] = []

    def begin(self, number: int) -> str:
        queue = jobq.current().job.queue
        self.starts.append((queue, number))
        self.now[queue] += 1
        self.most[queue] = max(self.most[queue], self.now[queue])
        return queue

    def end(self, queue: str) -> None:
        self.now[queue] -= 1

    def starts_of(self, queue: str) -> list[int]:
        return [number for name, number in self.starts if name == queue]


def taken(bench: Bench) -> dict[str, int]:
    """How many slots of each queue are taken."""
    rows = bench.execute(sa.select(slots.c.queue, sa.func.count(slots.c.worker_id)).group_by(slots.c.queue))
    return {row[0]: row[1] for row in rows}
