"""Drains: of one process, and of each circumstance beside it, in rounds that take turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

import jobq
from jobq.handlers import Args
from jobq_cli.bench import machine
from jobq_cli.bench.app import noop, plain
from jobq_cli.bench.bench import Bench
from jobq_cli.bench.drains import Drain, drain, fill, numbered
from jobq_cli.bench.figures import Figure, ratio
from jobq_cli.bench.mixed import PACED, PRIORITIES, QUEUES


@dataclass(frozen=True, slots=True)
class Circumstance:
    """What a drain is measured under, and its rate as a ratio to that of another one, right before it or after."""

    name: str
    words: str
    must: float
    aim: float
    over: str = "drain"


CIRCUMSTANCES = [
    Circumstance("backlog", "long backlog / short one", 0.85, 0.95),
    Circumstance("history", "full tables / empty ones", 0.9, 0.95),
    Circumstance("processes", "2 processes / 1, long backlog", 1.15, 1.3, over="backlog"),
    Circumstance("threads", "in threads / async", 0.6, 0.8),
    Circumstance("mixed", "40 queues, weights, priorities / one", 0.8, 0.95),
]


def measure(bench: Bench, names: frozenset[str]) -> Iterator[Figure]:
    """The usual drain, and in each round every one of `names` beside what it is compared with."""
    chosen = [each for each in CIRCUMSTANCES if each.name in names]
    usual: list[Drain] = []
    found: dict[str, list[tuple[Drain, Drain]]] = {each.name: [] for each in chosen}
    with ExitStack() as stack:
        filled = stack.enter_context(_filled(bench)) if "history" in names else None
        for round_ in bench.rounds():
            for each in chosen:
                over, one = _beside(bench, each, round_, filled)
                found[each.name].append((over, one))
                usual += [over] if each.over == "drain" else []
            if "drain" in names and not any(each.over == "drain" for each in chosen):
                bench.tell(f"drain, round {round_}")
                usual.append(_under(bench, "drain", filled))
    yield from _figures(usual)
    for each in chosen:
        overs, ones = zip(*found[each.name], strict=True)
        rates = tuple(one.rate for one in ones)
        yield Figure(each.name, each.words, ratio(rates, [over.rate for over in overs]), "x", each.must, each.aim)
        yield Figure(each.name, "drained", rates, "jobs/s")


def turned(each: Circumstance, round_: int) -> list[str]:
    """Which of the two comes first: what the machine does best, or worst, meets both."""
    return [each.over, each.name] if round_ % 2 else [each.name, each.over]


def _beside(bench: Bench, each: Circumstance, round_: int, filled: sa.Engine | None) -> tuple[Drain, Drain]:
    found = {}
    for name in turned(each, round_):
        bench.tell(f"{name}, round {round_}")
        found[name] = _under(bench, name, filled)
    return found[each.over], found[each.name]


@contextmanager
def _filled(bench: Bench) -> Iterator[sa.Engine]:
    with bench.database() as engine:
        bench.tell("history: filling the tables")
        fill(engine, bench.probe, finished=bench.sizes.finished, future=bench.sizes.future)
        yield engine


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
    if not usual:
        return
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
                return drain(bench, engine, numbered(bench.sizes.backlog), number=2)
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
