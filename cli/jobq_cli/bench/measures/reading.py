"""What `jobq.stats` costs in large tables, against small ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import sqlalchemy as sa

import jobq
from jobq.store.leading import campaign, sum_up
from jobq_cli.bench import statements
from jobq_cli.bench.bench import Bench, percentile, run, vacuum
from jobq_cli.bench.figures import Figure

ME = 1
LEASE = timedelta(hours=1)


def measure(bench: Bench) -> Iterator[Figure]:
    """As many jobs finished as due."""
    took = {}
    for number in (bench.sizes.small, bench.sizes.large):
        bench.tell(f"stats: filling the tables with {number} + {number}")
        with bench.database() as engine:
            run(engine, statements.add_finished(), n=number)
            run(engine, statements.add_due(), n=number)
            _sum_up(engine)
            vacuum(engine)
            took[number] = _reading(engine, bench.sizes.reads)
    for number, seconds in took.items():
        yield Figure("stats", f"with {number} + {number}, p50", (seconds * 1e3,), "ms", more_is_better=False)
    growth = took[bench.sizes.large] / took[bench.sizes.small]
    yield Figure("stats", "large tables / small ones", (growth,), "x", 5.0, 2.0, False)


def _sum_up(engine: sa.Engine) -> None:
    """As the leader of a fleet has, long before there are so many."""
    with engine.begin() as connection:
        office = campaign(connection, ME, LEASE)
    is_last = office is None
    while office is not None and not is_last:
        with engine.begin() as connection:
            is_last = sum_up(connection, office).is_last


def _reading(engine: sa.Engine, number: int) -> float:
    times = []
    with engine.connect() as connection:
        jobq.stats(connection)
        for _ in range(number):
            began = time.perf_counter()
            jobq.stats(connection)
            times.append(time.perf_counter() - began)
    return percentile(times, 0.5)
