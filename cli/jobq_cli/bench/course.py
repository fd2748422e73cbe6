"""Which measures there are, and the course of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jobq_cli.bench.bench import Bench
from jobq_cli.bench.figures import Figure
from jobq_cli.bench.measures import draining, enqueueing, picking_up, pressing, reading, resting, urgent

DRAINS = ("drain", *(each.name for each in draining.CIRCUMSTANCES))
OTHERS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "one-core": draining.measure_one_core,
    "latency": picking_up.measure,
    "urgent": urgent.measure,
    "enqueue": enqueueing.measure_one,
    "bulk": enqueueing.measure_bulk,
    "snapshot": pressing.measure,
    "idle": resting.measure_idle,
    "memory": resting.measure_memory,
    "stats": reading.measure,
}
NAMES = (*DRAINS, *OTHERS)


def course(bench: Bench, names: frozenset[str]) -> Iterator[Figure]:
    """The figures of these measures, as they come."""
    if drains := names & set(DRAINS):
        yield from draining.measure(bench, drains)
    for name, measure in OTHERS.items():
        if name in names:
            yield from measure(bench)


def steps(names: frozenset[str], rounds: int) -> int:
    """How often a run says what it does, about: for a bar."""
    drains = 2 * len(names & set(DRAINS) - {"drain"}) or len(names & {"drain"})
    in_rounds = drains + len(names & {"one-core", "latency", "enqueue", "bulk"})
    return rounds * in_rounds + len(names & {"urgent", "snapshot", "idle"}) + 2 * len(names & {"memory", "stats"})
