"""What came out of a run: medians over the rounds, and ratios of two figures of the same round. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeAlias

Line: TypeAlias = dict[str, Any]
JOBQ = "jobq"
NO_FIGURES = frozenset({"queue", "measure", "round", "failed", "log_lines"})


@dataclass(frozen=True, slots=True)
class Target:
    """A ratio of two rates, or a figure by itself (`under` None), and what it has to be. `least`: more is better."""

    words: str
    over: tuple[str, str]  # queue and measure
    under: tuple[str, str] | None
    must: float
    aim: float
    key: str = "rate"
    least: bool = True

    def is_met(self, value: float) -> bool:
        """Whether the value is what it must be."""
        return value >= self.must if self.least else value <= self.must


TARGETS = [
    Target("drain: jobq / raw", (JOBQ, "drain1"), ("raw", "drain1"), 0.5, 0.75),
    Target("drain: jobq / pgqueuer", (JOBQ, "drain1"), ("pgqueuer", "drain1"), 2.5, 3.0),
    Target("drain, server and worker on one core, jobs/s", (JOBQ, "onecore"), None, 20_000, 30_000),
    Target("drain, on one core: jobq / pgqueuer", (JOBQ, "onecore"), ("pgqueuer", "onecore"), 1.5, 1.5),
    Target("bulk enqueue: jobq / pgqueuer", (JOBQ, "many"), ("pgqueuer", "many"), 1.2, 2.0),
    Target("pick-up, p50 in ms", (JOBQ, "latency"), None, 2.0, 1.5, "p50_ms", False),
    Target("pick-up, p99 in ms", (JOBQ, "latency"), None, 8.0, 4.0, "p99_ms", False),
    Target("worker CPU for 10 000 jobs, in s", (JOBQ, "drain1"), None, 0.25, 0.12, "worker_cpu", False),
    Target("server CPU for 10 000 jobs, in s", (JOBQ, "drain1"), None, 0.25, 0.18, "server_cpu", False),
]


def infos_of(lines: Iterable[Line]) -> dict[str, Line]:
    """What each queue says of itself."""
    return {line["queue"]: line for line in lines if line["measure"] == "info"}


def medians(lines: Iterable[Line]) -> dict[tuple[str, str], dict[str, float]]:
    """Of each queue and measure; those that failed in every round are not there."""
    rounds: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if "round" in line and "failed" not in line:
            rounds.setdefault((line["queue"], line["measure"]), []).append(line)
    return {
        key: {name: median(line[name] for line in found) for name in found[0] if name not in NO_FIGURES}
        for key, found in rounds.items()
    }


def reached(target: Target, lines: Sequence[Line]) -> float | None:
    """The median over the rounds, None when something of it was not measured."""
    over = _by_round(lines, target.over, target.key)
    if target.under is None:
        return median(over.values()) if over else None
    under = _by_round(lines, target.under, target.key)
    ratios = [over[each] / under[each] for each in over.keys() & under.keys()]
    return median(ratios) if ratios else None


def _by_round(lines: Iterable[Line], which: tuple[str, str], key: str) -> dict[int, float]:
    return {line["round"]: line[key] for line in lines if (line["queue"], line["measure"]) == which and key in line}
