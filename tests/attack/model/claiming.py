"""Claims: made, answered, lost, executed late; and the reconcile."""

from __future__ import annotations

from collections.abc import Iterator

from model.rules import Rules
from model.state import NOBODY, Hold, Job, Step, World, without


def claim(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """`claim()` in statements/claim.py, in autocommit: its answer is under way once it is committed.

    A worker has one claim in flight (`Claimer.run`), and none before it has reconciled.
    """
    worker = world.workers[w]
    if worker.mode != "up" or worker.unsure == 2 or len(worker.holds) >= rules.holds:
        return
    if any(hold.phase == "sent" for hold in worker.holds):
        return
    for j, after, job in _claimable(world, rules, w):
        sent = Hold(j, after.jobs[j].attempt, "sent", excused=worker.row != "live")
        after = after.with_worker(w, worker._replace(holds=tuple(sorted((*worker.holds, sent)))))
        yield Step(f"worker {w} claims job {j}, attempt {sent.attempt}", after, took=job)


def late_claim(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """The same statement, that nobody waits for any more; or it never arrives."""
    worker = world.workers[w]
    if not worker.late:
        return
    yield Step(f"worker {w}'s late claim is dropped", world.with_worker(w, worker._replace(late=False)))
    for j, after, job in _claimable(world, rules, w):
        after = after.with_worker(w, worker._replace(late=False))
        yield Step(f"worker {w}'s late claim takes job {j}", after, took=job)


def _claimable(world: World, rules: Rules, w: int) -> Iterator[tuple[int, World, Job]]:
    """Due rows with an attempt left that nobody has or holds locked, under a key-share lock on the worker's own row."""
    if world.workers[w].row == "gone" and rules.claim_locks_the_workers_row:
        return
    for j, job in enumerate(world.jobs):
        is_due = job.due or not rules.claim_of_due_jobs_only
        may_run = job.place == "open" and job.owner == NOBODY and job.failures < rules.max_attempts
        is_within = rules.attempts_only_grow or job.attempt < rules.claims
        if may_run and is_due and is_within and not world.is_locked(j):
            attempt = job.attempt + 1 if rules.attempt_grows else job.failures + 1
            claimed = job._replace(owner=w, attempt=attempt)
            after = world.with_job(j, claimed)._replace(past=world.jobs if rules.relaxed else None)
            yield j, after, job


def answer(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """The claim's answer is read and the handler begins; or it is lost, or nobody waits for it any more."""
    worker = world.workers[w]
    for hold in worker.holds:
        if hold.phase == "sent" and worker.mode == "up":
            begun = without(worker, hold, hold._replace(phase="run"))
            yield Step(f"worker {w} begins job {hold.job}", world.with_worker(w, begun))
            if world.faults:
                lost = without(worker, hold)._replace(unsure=2)
                after = world.with_worker(w, lost)._replace(faults=world.faults - 1)
                yield Step(f"the answer to worker {w}'s claim of job {hold.job} is lost", after)
    is_quiet = worker.mode == "up" and not worker.unsure and not worker.late
    if world.faults and is_quiet and not any(hold.phase == "sent" for hold in worker.holds):
        late = worker._replace(unsure=2, late=True)
        after = world.with_worker(w, late)._replace(faults=world.faults - 1)
        yield Step(f"worker {w}'s claim is not answered, and may still be executed", after)


def reconcile(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """`lock_own_row()`, then `give_back_unknown()`: before the next claim, and once more a lease later.

    By then the lost claim has been executed or dropped, and what the heartbeats found to be lost is stopped. It knows
    the jobs that are held by their ids and attempts. It waits for a row that is locked.
    """
    worker = world.workers[w]
    if worker.mode != "up" or not worker.unsure or any(hold.phase == "sent" for hold in worker.holds):
        return
    if worker.unsure == 1 and (worker.late or (rules.handlers_stop and any(not hold.true for hold in worker.holds))):
        return
    known = {(hold.job, hold.attempt if rules.reconciles_by_attempt else 0) for hold in worker.holds}
    unknown = [j for j, job in enumerate(world.jobs) if job.owner == w and _named(j, job, rules) not in known]
    if worker.row == "gone" or any(world.is_locked(j) for j in unknown):
        return
    after = world
    if rules.reconciles:
        for j in unknown:
            after = after.with_job(j, world.jobs[j]._replace(owner=NOBODY))
    left = 1 if worker.unsure == 2 and rules.reconciles_again else 0
    after = after.with_worker(w, worker._replace(unsure=left))
    if after.jobs != world.jobs:
        after = after._replace(past=None)
    yield Step(f"worker {w} reconciles", after)


def _named(j: int, job: Job, rules: Rules) -> tuple[int, int]:
    return j, job.attempt if rules.reconciles_by_attempt else 0
