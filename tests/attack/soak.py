"""What is measured while workers go on and on, and the producer that keeps them busy."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import sqlalchemy as sa
from board import Board
from fleet import Member
from soak_app import KINDS, leak
from soak_judge import Sample

import jobq

SIZES = """SELECT relname || ' size', pg_total_relation_size(oid) FROM pg_class
WHERE relnamespace = 'jobq'::regnamespace AND relkind IN ('r', 'i')"""
CONNECTIONS = """SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'jobq %' AND application_name <> 'jobq leak'"""
LEAKED = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'jobq leak'"
LARGE = 50_000
HASTY, EASY = 0.03, 0.4  # seconds between two times


def memory_of(pid: int) -> int:
    """Resident bytes."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def measured(board: Board, members: dict[str, Member]) -> Sample:
    """Each process, and the tables with their indexes."""
    values: dict[str, float] = {}
    for name, member in members.items():
        values[f"{name}: memory"] = memory_of(member.pid)
        values[f"{name}: threads"] = len(os.listdir(f"/proc/{member.pid}/task"))
        values[f"{name}: descriptors"] = len(os.listdir(f"/proc/{member.pid}/fd"))
    sizes = {f"database: {name}": float(size) for name, size in board.rows(SIZES)}
    connections = {"fleet: connections": float(board.one(CONNECTIONS)), "leaky: connections": float(board.one(LEAKED))}
    return Sample(time.monotonic(), {**values, **connections, **sizes})


def sampled(seconds: float, interval: float, look: Callable[[], Sample]) -> Iterator[Sample]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield look()
        time.sleep(interval)


class Producer:
    """A few jobs of each kind at a time, now and then a large one, from a thread; at first many, which warms up."""

    def __init__(self, engine: sa.Engine, *, warm_up: float) -> None:
        self.enqueued = 0
        self._warm_until = time.monotonic() + warm_up * 0.8
        self.error: BaseException | None = None
        self._engine = engine
        self._stop = threading.Event()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _run(self) -> None:
        random = Random(1)
        try:
            while not self._stop.wait(HASTY if time.monotonic() < self._warm_until else EASY):
                with self._engine.begin() as connection:
                    self.enqueued += self._enqueue(connection, random)
        except BaseException as error:
            self.error = error

    def _enqueue(self, connection: sa.Connection, random: Random) -> int:
        text = "x" * random.choice([1, 20, 300, LARGE])
        for handler in KINDS:
            jobq.enqueue_many(connection, handler, [{"text": text}] * 3)
        jobq.enqueue_many(connection, leak, [{"text": ""}])
        connection.execute(sa.text("UPDATE asked SET jobs = jobs + 3"))
        return len(KINDS) * 3
