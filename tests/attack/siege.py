"""A fleet at work, something that happens to its server or its network, and what has to hold afterwards."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from apps import nap
from board import Board
from fleet import Fleet, Member, fleet_on, until, wait_out
from named import named, of_the_tables
from siege_app import SEED, entry

HERE = Path(__file__).parent
RESUMES_SECONDS = 5.0
ENDS_SECONDS = 40.0
CPU_SHARE = 0.05
SETTLES_SECONDS = 1.5  # after the blow, before the processor's time is counted: each service notices it once
SAMPLE_SECONDS = 0.5
QUICK, LONG, ENTRIES = 30, 4, 8


@dataclass
class Siege:
    """Workers and the test's own way to the database, which nothing is done to."""

    board: Board
    fleet: Fleet
    workers: list[Member] = field(default_factory=list)

    def begin(self, number: int = 2, *, seed: str = "", **options: object) -> None:
        paths = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
        env = {"PYTHONPATH": paths, SEED: seed}
        self.workers = self.fleet.start_many(number, app="siege_app:app", env=env, poll_interval=1, **options)

    def besiege(
        self,
        blow: AbstractContextManager[object],
        seconds: float,
        *,
        is_away: bool = False,
        resumes_within: float = RESUMES_SECONDS,
        entries: int = ENTRIES,
    ) -> list[str]:
        """What does not hold. `is_away`: meanwhile no worker can do anything, so it has to be quiet."""
        load = Load(self.board, seconds, entries)
        used = Used(self.workers)
        with blow:
            wait_out(min(SETTLES_SECONDS, seconds))
            used.watch(seconds - SETTLES_SECONDS)
        if dead := self.dead():
            return dead
        late, took = load.late(resumes_within)
        wrong = [*load.found_wrong(late), *self.dead()]
        if took > resumes_within:
            wrong.append(f"no job began within {resumes_within:.0f} s")
        if is_away and used.share > CPU_SHARE:
            wrong.append(f"a worker used {used.share:.0%} of a processor in an outage")
        print(f"a job began {took:.2f} s after; {used.share:.1%} of a processor meanwhile")
        return wrong

    def dead(self) -> list[str]:
        ended = [worker for worker in self.workers if not worker.is_alive]
        return [f"worker {worker.pid} ended with {worker.process.returncode}" for worker in ended]


class Used:
    """The processor's time of the workers."""

    def __init__(self, workers: list[Member]) -> None:
        self._workers = workers
        self.share = 0.0

    def watch(self, seconds: float) -> None:
        """Returns after the time, a second at least; `share` is then that of the worker that used most."""
        samples = [self._sample() for _ in range(max(2, int(seconds / SAMPLE_SECONDS)))]
        self.share = max((steady_share([each[pid] for each in samples]) for pid in samples[-1]), default=0.0)

    def _sample(self) -> dict[int, float]:
        """The share that each process used since now: of those who live at its end."""
        began, at_first = time.monotonic(), self._cpu_seconds()
        wait_out(SAMPLE_SECONDS)
        seconds = time.monotonic() - began
        return {pid: (used - at_first[pid]) / seconds for pid, used in self._cpu_seconds().items()}

    def _cpu_seconds(self) -> dict[int, float]:
        return {each.pid: each.cpu_seconds for each in self._workers if each.is_alive}


def steady_share(shares: list[float]) -> float:
    """The mean of all samples but the greatest: one collection of garbage happens whatever is going on outside."""
    usual = sorted(shares)[:-1]
    return sum(usual) / len(usual)


class Load:
    """Jobs that wait, jobs that run while it happens, and jobs whose work is a transaction."""

    def __init__(self, board: Board, seconds: float, entries: int) -> None:
        self._board = board
        self._long = board.enqueue_many(nap, [{"seconds": seconds + 1}] * LONG)
        self._board.until_begun(self._long)
        self._entries = board.enqueue_many(entry, [{}] * entries)
        self._quick = board.enqueue_many(nap, [{"seconds": 0.1}] * QUICK)
        until(lambda: board.ended(self._quick), "load")

    def late(self, within: float) -> tuple[int, float]:
        """A job that is enqueued now, and how long it took to begin, infinite if it did not."""
        id_, began = self._board.enqueue(nap, seconds=0), time.monotonic()
        try:
            self._board.until_begun([id_], within=within)
        except AssertionError:
            return id_, float("inf")
        return id_, time.monotonic() - began

    def found_wrong(self, late: int) -> list[str]:
        napped, board = [*self._long, *self._quick, late], self._board
        try:
            board.until_ended([*napped, *self._entries], within=ENDS_SECONDS)
        except AssertionError as error:
            return [str(error)]
        ends = {(row.state, row.failures) for row in board.ended(napped)} - {("done", 0)}
        written = "SELECT job_id, count(*) FROM books WHERE job_id = ANY(:ids) GROUP BY 1"
        entries = {row[0]: row[1] for row in board.rows(written, ids=self._entries)}
        return [
            *[f"a nap ended as {end}" for end in ends],
            *[f"job {id_} ran {runs} times" for id_, runs in board.runs_of(napped).items() if runs != 1],
            *[f"entry {id_} stands {entries.get(id_, 0)} times" for id_ in self._entries if entries.get(id_) != 1],
            *named(board, of_the_tables),
        ]


@contextmanager
def siege_of(url: str, folder: Path, *, by_way_of: str | None = None) -> Iterator[Siege]:
    """No worker yet."""
    board = Board(url)
    try:
        board.prepare()
        with fleet_on(by_way_of or url, folder, ledger_url=url) as fleet:
            yield Siege(board, fleet)
    finally:
        board.engine.dispose()
