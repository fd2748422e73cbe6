"""Whether an installation or a worker is well: facts in, findings out. No database, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from jobq.report import Stats, WorkerRow
from jobq.spans import pause_end, span


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `problem`: what is wrong and what to do next, None when nothing is."""

    name: str
    problem: str | None = None

    @property
    def is_ok(self) -> bool:
        return self.problem is None


@dataclass(frozen=True, slots=True)
class Health:
    """What was looked at, in that order; what needed something that failed was not."""

    checks: tuple[Check, ...]

    @property
    def is_ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, a line each."""
        return tuple(check.problem for check in self.checks if check.problem is not None)


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """What a worker knows of itself. `lease_left`: None without a lease; `behind_for`: since when it tries to claim.

    `patience`: for how long it may try before it counts as stalled.
    """

    is_running: bool = False
    is_stopping: bool = False
    lease_left: timedelta | None = None
    has_claimed: bool = False
    behind_for: timedelta = timedelta(0)
    patience: timedelta = timedelta(seconds=3)


def readiness(facts: WorkerFacts) -> Health:
    """Whether a worker takes jobs: it runs, is not stopping, holds its lease, and its claims come through.

    One that is full does not look for more, and is ready.
    """
    checks = (
        Check("running", _not_running(facts)),
        Check("lease", _no_lease(facts)),
        Check("claims", _no_claims(facts)),
    )
    return Health(checks if facts.is_running else checks[:1])


def _not_running(facts: WorkerFacts) -> str | None:
    if not facts.is_running:
        return "the worker does not run"
    return "the worker is stopping" if facts.is_stopping else None


def _no_lease(facts: WorkerFacts) -> str | None:
    if facts.lease_left is None:
        return "the worker is not registered: it waits for the database, or joins anew after a lost lease"
    return "the worker's lease has run out: the database does not answer" if facts.lease_left <= timedelta(0) else None


def _no_claims(facts: WorkerFacts) -> str | None:
    if facts.behind_for > facts.patience:
        return f"no claim has succeeded for {facts.behind_for.total_seconds():.0f} s: the database fails or is locked"
    return None if facts.has_claimed else "no claim has succeeded yet"


def diagnose(
    stats: Stats,
    workers: Iterable[WorkerRow],
    due: Mapping[tuple[str, str], int],
    *,
    min_workers: int,
    max_age: timedelta | None,
) -> tuple[Check, ...]:
    """What the operator of an installation wants to be woken for. `due`: how many jobs are due, by queue and kind."""
    alive = [worker for worker in workers if worker.alive]
    checks = [Check("workers", _too_few(len(alive), min_workers))]
    if max_age is not None:
        checks.append(Check("age", too_old(stats, max_age)))
    return (*checks, Check("served", _unserved(alive, due)))


def _too_few(alive: int, wanted: int) -> str | None:
    if alive >= wanted:
        return None
    found = f"{alive} live worker{'' if alive == 1 else 's'}, wanted {wanted} or more"
    return f"{found}: start one with jobq run module:app"


def too_old(stats: Stats, limit: timedelta) -> str | None:
    """The queue whose oldest due job waits longest, where that is above `limit`; a pause explains, and is no excuse."""
    ages = [(age, queue) for queue in stats.queues if (age := queue.oldest_due) is not None and age > limit]
    if not ages:
        return None
    worst, queue = max(ages, key=lambda found: found[0])
    waits = f"queue {queue.queue}: its oldest due job waits for {span(worst)}"
    more = f" (and {len(ages) - 1} more)" if len(ages) > 1 else ""
    if queue.paused_until is not None:
        return f"{waits}, it is paused {pause_end(queue.paused_until)}{more}: jobq resume {queue.queue}"
    return f"{waits}{more}: see jobq stats"


def _unserved(alive: list[WorkerRow], due: Mapping[tuple[str, str], int]) -> str | None:
    left = [(queue, kind) for (queue, kind), number in sorted(due.items()) if number]
    said = list(_each_unserved(alive, left))
    more = f" (and {len(said) - 1} more)" if len(said) > 1 else ""
    return f"{said[0]}{more}: start a worker for it, see jobq workers" if said else None


def _each_unserved(alive: list[WorkerRow], left: Iterable[tuple[str, str]]) -> Iterator[str]:
    for queue, kind in left:
        serving = [worker for worker in alive if worker.queues is None or queue in worker.queues]
        if not serving:
            yield f"queue {queue}: jobs are due and no live worker serves it"
        elif not any(kind in worker.kinds for worker in serving):
            yield f"queue {queue}: jobs of kind {kind} are due and no live worker of this queue has a handler for it"
