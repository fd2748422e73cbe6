"""What it costs to enqueue: beside a bare insert, in bulk, and from a SELECT."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import sqlalchemy as sa
from sqlalchemy.orm import Session

import jobq
from jobq_cli.bench import statements
from jobq_cli.bench.app import noop
from jobq_cli.bench.bench import Bench
from jobq_cli.bench.figures import Figure, ratio

BLOCK = 100  # of each, in turns: a busy moment of the machine meets both
BARE = {
    "queue": "default", "kind": "noop", "args": {"number": -1}, "priority": 1, "max_attempts": 5,
    "callsite": "jobq_cli/bench/measures/enqueueing.py:55", "meta": {},
}  # fmt: skip


def measure_one(bench: Bench) -> Iterator[Figure]:
    """One by one through a Session, a transaction each; and a bare insert of the same row, just so."""
    ours, bare = [], []
    for round_ in bench.rounds():
        bench.tell(f"enqueue one by one, round {round_}")
        with bench.database() as engine:
            for way in (_enqueue, _insert):
                way(engine, BLOCK // 2)  # connects, and compiles
            seconds = [0.0, 0.0]
            for _ in range(max(1, bench.sizes.one // BLOCK)):
                for place, way in enumerate((_enqueue, _insert)):
                    seconds[place] += way(engine, BLOCK)
        number = max(1, bench.sizes.one // BLOCK) * BLOCK
        ours.append(number / seconds[0])
        bare.append(number / seconds[1])
    yield Figure("enqueue", "one by one", tuple(ours), "jobs/s")
    yield Figure("enqueue", "bare insert", tuple(bare), "rows/s")
    yield Figure("enqueue", "one by one / bare insert", ratio(ours, bare), "x", 0.8, 0.9)


def measure_bulk(bench: Bench) -> Iterator[Figure]:
    """`enqueue_many`, with the ids returned; and `enqueue_select` of as many rows as it is measured with."""
    many, select, same = [], [], []
    for round_ in bench.rounds():
        bench.tell(f"enqueue in bulk, round {round_}")
        many.append(_rate(bench, bench.sizes.many, _many))
        same.append(_rate(bench, bench.sizes.select, _many))
        select.append(_rate(bench, bench.sizes.select, _select))
    yield Figure("bulk", f"enqueue_many of {bench.sizes.many}", tuple(many), "jobs/s")
    yield Figure("bulk", f"enqueue_select of {bench.sizes.select}", tuple(select), "jobs/s")
    yield Figure("bulk", "select / many", ratio(select, same), "x", 1.5, 3.0)


def _enqueue(engine: sa.Engine, number: int) -> float:
    began = time.perf_counter()
    for _ in range(number):
        with Session(engine) as session:
            jobq.enqueue(session, noop, -1)
            session.commit()
    return time.perf_counter() - began


def _insert(engine: sa.Engine, number: int) -> float:
    began = time.perf_counter()
    for _ in range(number):
        with Session(engine) as session:
            session.execute(statements.bare_insert(), BARE).scalar_one()
            session.commit()
    return time.perf_counter() - began


def _rate(bench: Bench, number: int, way: Callable[[Session, int], object]) -> float:
    with bench.database() as engine:
        with Session(engine) as session:
            way(session, 1)  # connects, and compiles
            session.commit()
        began = time.perf_counter()
        with Session(engine) as session:
            way(session, number)
            session.commit()
        return number / (time.perf_counter() - began)


def _many(session: Session, number: int) -> None:
    enqueued = jobq.enqueue_many(session, noop, [{"number": each} for each in range(number)])
    assert len(enqueued) == number


def _select(session: Session, number: int) -> None:
    numbers = sa.func.generate_series(1, number, type_=sa.Integer).table_valued("number").render_derived()
    made = jobq.enqueue_select(session, noop, sa.select(sa.cast(numbers.c.number, sa.Integer).label("number")))
    assert made == number
