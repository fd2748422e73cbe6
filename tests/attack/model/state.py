"""What the database and the processes know: values that a search can keep by the hundred thousand."""

from __future__ import annotations

from typing import NamedTuple

NOBODY = -1
ENDED = ("done", "dead", "cancelled")


class Job(NamedTuple):
    """A row of `jobs` (place "open") or `finished_jobs`. `worked`: of a done job, whether its work is committed."""

    place: str = "open"
    owner: int = NOBODY
    attempt: int = 0
    failures: int = 0
    due: bool = True
    worked: bool = False


class Hold(NamedTuple):
    """What a process believes of one claim, and (from `true` on) what is so: only the checks read that.

    phase: "sent" (the claim is committed, its answer under way), "run" (the handler runs), "open" (its transaction has
    moved the row and is not committed: the row is locked), "good" and "bad" (it has ended, to be written).
    `old`: under an id that the process had before. `true`: the row still is in this claim. `excused`: a second handler
    may begin beside this one. `written`: its end is recorded, but the answer was lost.
    """

    job: int
    attempt: int
    phase: str
    old: bool = False
    true: bool = True
    excused: bool = False
    written: bool = False


class Worker(NamedTuple):
    """A process, and the row of `workers` that is its own.

    mode: "up", "lost" (it knows that its lease is over), "cut" (frozen, or cut off), "down". row: "live", "over" (the
    lease, by the database's clock), "gone". unsure: 2, a claim's answer was lost; 1, reconciled once, once more later.
    late: a claim whose answer nobody waits for may still be executed. look: its next rescue looks everywhere.
    """

    mode: str = "up"
    row: str = "live"
    unsure: int = 0
    late: bool = False
    look: bool = False
    holds: tuple[Hold, ...] = ()


class World(NamedTuple):
    """`faults`, `hands`: how many more faults and acts of an operator there may be.

    `past`: the jobs before the last commit that a crash of the server may take back (relaxed commits alone).
    """

    jobs: tuple[Job, ...]
    workers: tuple[Worker, ...]
    faults: int
    hands: int
    past: tuple[Job, ...] | None = None

    def with_job(self, j: int, job: Job) -> World:
        return self._replace(jobs=(*self.jobs[:j], job, *self.jobs[j + 1 :]))

    def with_worker(self, w: int, worker: Worker) -> World:
        return self._replace(workers=(*self.workers[:w], worker, *self.workers[w + 1 :]))

    def is_locked(self, j: int) -> bool:
        """Whether a handler's open transaction has moved this row."""
        return any(hold.job == j and hold.phase == "open" for worker in self.workers for hold in worker.holds)


class Step(NamedTuple):
    """What happens, and the world after it. `wrote`: the claim whose write the fence let by; `took`: a row claimed."""

    name: str
    after: World
    wrote: Hold | None = None
    took: Job | None = None


def start(workers: int, jobs: int, *, faults: int, hands: int) -> World:
    """A fleet at rest, and jobs that are due."""
    return World((Job(),) * jobs, (Worker(),) * workers, faults, hands)


def without(worker: Worker, hold: Hold, *new: Hold) -> Worker:
    """The worker with this claim replaced."""
    holds = list(worker.holds)
    holds.remove(hold)
    return worker._replace(holds=tuple(sorted((*holds, *new))))


def claim_is_over(world: World, j: int, *, excused: bool = False) -> World:
    """Whatever process believes to have this job, its claim has ended. `excused`: an operator has ended it."""
    workers = tuple(
        worker._replace(
            holds=tuple(sorted(_over(hold, excused) if hold.job == j and hold.true else hold for hold in worker.holds))
        )
        if any(hold.job == j and hold.true for hold in worker.holds)
        else worker
        for worker in world.workers
    )
    return world._replace(workers=workers)


def _over(hold: Hold, excused: bool) -> Hold:
    runs = hold.phase in ("sent", "run", "open")
    return hold._replace(true=False, excused=runs and (hold.excused or excused))
