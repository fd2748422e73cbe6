"""`current().transaction()`: the fenced move is the last write, and the row is locked until the COMMIT."""

from __future__ import annotations

from collections.abc import Iterator

from model.ending import passes
from model.rules import Rules
from model.state import NOBODY, Step, World, claim_is_over, without


def move(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """`finish()` as the last statement of the handler's transaction. No row moved: rolled back, LeaseLostError."""
    worker = world.workers[w]
    if worker.mode != "up":
        return
    for hold in worker.holds:
        if hold.phase != "run" or world.is_locked(hold.job):
            continue
        if passes(world, rules, w, hold):
            open_ = without(worker, hold, hold._replace(phase="open"))
            yield Step(f"worker {w} moves job {hold.job} in a transaction", world.with_worker(w, open_), wrote=hold)
        else:
            yield Step(f"worker {w} has lost job {hold.job}", world.with_worker(w, without(worker, hold)))


def commit(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """COMMIT, of the work and the end; an answer that is lost is settled by reading (`lock_held()`): the same."""
    worker = world.workers[w]
    if worker.mode != "up":
        return
    for hold in worker.holds:
        if hold.phase == "open":
            done = world.jobs[hold.job]._replace(place="done", owner=NOBODY, worked=True)
            after = world.with_worker(w, without(worker, hold))
            after = claim_is_over(after, hold.job).with_job(hold.job, done)._replace(past=None)
            yield Step(f"worker {w} commits job {hold.job} with its work", after)
            bad = without(worker, hold, hold._replace(phase="bad", excused=False))
            yield Step(f"worker {w}'s COMMIT of job {hold.job} fails", world.with_worker(w, bad))
