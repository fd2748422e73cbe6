"""Drains: of one process, and of each circumstance beside it, in rounds that take turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import sqlalchemy as sa

import jobq
from jobq.handlers import Args
from jobq_cli.bench import machine, statements
from jobq_cli.bench.app import noop, plain
from jobq_cli.bench.bench import Bench, run
from jobq_cli.bench.drains import Drain, drain, numbered
from jobq_cli.bench.figures import Figure, ratio
from jobq_cli.bench.mixed import PACED, PRIORITIES, QUEUES


@dataclass(frozen=True, slots=True)
class Circumstance:
    """What a drain is measured under, and its rate as a ratio to the usual one of the same round."""

    name: str
    words: str
    must: float
    aim: float


CIRCUMSTANCES = [
    Circumstance("backlog", "long backlog / short one", 0.85, 0.95),
    Circumstance("history", "full tables / empty ones", 0.9, 0.95),
    Circumstance("processes", "2 processes / 1", 1.15, 1.3),
    Circumstance("threads", "in threads / async", 0.6, 0.8),
    Circumstance("mixed", "40 queues, weights, priorities / one", 0.8, 0.95),
]


def measure(bench: Bench, names: frozenset[str]) -> Iterator[Figure]:
    """The usual drain, and those of `names` beside it: in each round every one of them once."""
    chosen = [each for each in CIRCUMSTANCES if each.name in names]
    with ExitStack() as stack:
        filled = stack.enter_context(bench.database()) if "history" in names else None
        if filled is not None:
            bench.tell("history: filling the tables")
            run(filled, statements.add_finished(), n=bench.sizes.finished)
            run(filled, statements.add_future(), n=bench.sizes.future)
        found: dict[str, list[Drain]] = {name: [] for name in ("drain", *(each.name for each in chosen))}
        for round_ in bench.rounds():
            for name in turned(list(found), round_ - 1):
                bench.tell(f"{name}, round {round_}")
                found[name].append(_under(bench, name, filled))
    yield from _figures(found["drain"])
    usual = [one.rate for one in found["drain"]]
    for each in chosen:
        rates = [one.rate for one in found[each.name]]
        yield Figure(each.name, each.words, ratio(rates, usual), "x", each.must, each.aim)
        yield Figure(each.name, "drained", tuple(rates), "jobs/s")


def turned(names: list[str], by: int) -> list[str]:
    """So that another one is the first of each round: what the machine does best, or worst, meets all of them."""
    by %= len(names)
    return names[by:] + names[:by]


def measure_one_core(bench: Bench) -> Iterator[Figure]:
    """The server and the worker on one core; on the embedded server alone, which is ours to put there."""
    if bench.server is None or not bench.scratch.is_embedded:
        return
    rates = []
    for round_ in bench.rounds():
        bench.tell(f"one core, round {round_}")
        with bench.database() as engine, machine.on_one_core(bench.server):
            rates.append(drain(bench, engine, numbered(bench.sizes.jobs)).rate)
    yield Figure("one-core", "drained, with the server", tuple(rates), "jobs/s", 20_000, 30_000)


def _figures(usual: list[Drain]) -> Iterator[Figure]:
    yield Figure("drain", "drained, 1 process", tuple(one.rate for one in usual), "jobs/s")
    for who, must, aim in (("worker", 0.25, 0.12), ("server", 0.25, 0.18)):
        costs = [getattr(one, f"{who}_cpu") for one in usual]
        if None not in costs:
            yield Figure("drain", f"CPU of the {who} for 10 000 jobs", tuple(costs), "s", must, aim, False)


def _under(bench: Bench, name: str, filled: sa.Engine | None) -> Drain:
    if name == "history" and filled is not None:
        return drain(bench, filled, numbered(bench.sizes.jobs))
    with bench.database() as engine:
        match name:
            case "backlog":
                return drain(bench, engine, numbered(bench.sizes.backlog))
            case "processes":
                return drain(bench, engine, numbered(bench.sizes.jobs), number=2)
            case "threads":
                return drain(bench, engine, [plain.args(-1)] * bench.sizes.jobs)
            case "mixed":
                return _mixed(bench, engine)
        return drain(bench, engine, numbered(bench.sizes.jobs))


def _mixed(bench: Bench, engine: sa.Engine) -> Drain:
    held_back = [noop.options(queue=queue).args(-1) for queue in PACED for _ in range(100)]
    with engine.begin() as connection:
        jobq.enqueue_many(connection, noop, held_back)
    kinds = [noop.options(queue=queue, priority=level) for level in PRIORITIES for queue in QUEUES]
    rows: list[Args[...]] = [kinds[number % len(kinds)].args(-1) for number in range(bench.sizes.jobs)]
    return drain(bench, engine, rows, app="jobq_cli.bench.mixed:app")
