"""How much of everything is measured."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of jobs, rounds and seconds. The defaults are those that the figures of the documents are made with."""

    rounds: int = 7  # that take turns; a ratio is the median of theirs
    jobs: int = 20_000
    backlog: int = 200_000
    finished: int = 1_000_000
    future: int = 500_000
    concurrency: int = 200
    one: int = 2_000
    many: int = 50_000
    select: int = 100_000
    paced: int = 200
    interval: float = 0.05
    pressure_rate: int = 2_000  # jobs a second in and out, while another session holds a snapshot
    pressure_seconds: float = 60.0
    idle_queues: int = 40
    idle_seconds: float = 60.0  # a leader maintains every 30 s
    settle_seconds: float = 3.0  # until a worker that has nothing to do is idle
    memory_first: int = 10_000
    memory_last: int = 1_000_000
    large: int = 1_000_000
    small: int = 1_000
    reads: int = 20  # of stats, each
    slow_jobs: int = 100
    slow_seconds: float = 0.2
    urgent: int = 10


FULL = Sizes()
QUICK = replace(
    FULL, rounds=1, jobs=4_000, backlog=12_000, finished=30_000, future=15_000, one=200, many=5_000, select=10_000,
    paced=40, interval=0.02, pressure_rate=1_000, pressure_seconds=4.0, idle_seconds=8.0, settle_seconds=2.0,
    memory_first=2_000, memory_last=10_000, large=20_000, reads=5, slow_jobs=60, slow_seconds=0.1, urgent=3,
)  # fmt: skip
