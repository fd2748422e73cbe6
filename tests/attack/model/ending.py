"""What handlers do, and the writes of their workers: each fenced by id, attempt and worker."""

from __future__ import annotations

from collections.abc import Iterator

from model.rules import Rules
from model.state import NOBODY, Hold, Job, Step, World, claim_is_over, without


def passes(world: World, rules: Rules, w: int, hold: Hold) -> bool:
    """`held()` and `still_mine()` in statements/fence.py."""
    job = world.jobs[hold.job]
    if job.place != "open":
        return False
    same_attempt = job.attempt == hold.attempt or not rules.fence_on_attempt
    if rules.fence_on_worker:
        return same_attempt and job.owner == w and not hold.old
    return same_attempt and (job.owner != NOBODY or not rules.fence_on_some_worker)


def handle(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """A handler works and commits its work by its own means, or raises."""
    worker = world.workers[w]
    if worker.mode != "up":
        return
    for hold in worker.holds:
        if hold.phase == "run":
            good = without(worker, hold, hold._replace(phase="good", excused=False))
            word = "is committed" if rules.end_after_work else "is done"
            yield Step(f"the work of worker {w} for job {hold.job} {word}", world.with_worker(w, good))
            bad = without(worker, hold, hold._replace(phase="bad", excused=False))
            yield Step(f"the handler of worker {w} for job {hold.job} raises", world.with_worker(w, bad))


def write(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """`finish()`, or `put_back()` for what may be tried again: of what has ended. Waits for a row that is locked.

    The answer may be lost; then it is written again. What the fence refuses is dropped.
    """
    worker = world.workers[w]
    if worker.mode not in ("up", "lost"):
        return
    for hold in worker.holds:
        if hold.phase not in ("good", "bad") or world.is_locked(hold.job):
            continue
        if not passes(world, rules, w, hold):
            after = world.with_worker(w, without(worker, hold))
            yield Step(f"worker {w}'s write of job {hold.job}, attempt {hold.attempt}, is refused", after)
            continue
        for word, job in _ends(world.jobs[hold.job], rules, hold):
            yield from _written(world, rules, w, hold, job, word)


def _ends(job: Job, rules: Rules, hold: Hold) -> Iterator[tuple[str, Job]]:
    free = job._replace(owner=NOBODY)
    if hold.phase == "good":
        yield "done", free._replace(place="done", worked=rules.end_after_work)
        return
    failures = job.failures + 1
    if failures >= rules.max_attempts:
        yield "dead", free._replace(place="dead", failures=failures)
    else:
        yield "failed, to be retried", free._replace(failures=failures, due=False)
    yield "snoozed", free._replace(due=False)


def _written(world: World, rules: Rules, w: int, hold: Hold, job: Job, word: str) -> Iterator[Step]:
    name = f"worker {w} records job {hold.job}, attempt {hold.attempt}, as {word}"
    after = claim_is_over(world, hold.job).with_job(hold.job, job)
    after = after._replace(past=world.jobs if rules.relaxed else None)
    worker, mine = after.workers[w], next(each for each in after.workers[w].holds if _is(each, hold))
    if not rules.end_after_work and hold.phase == "good":
        yield Step(name, after.with_worker(w, without(worker, mine, mine._replace(phase="work left"))), wrote=hold)
        return
    yield Step(name, after.with_worker(w, without(worker, mine)), wrote=hold)
    if world.faults:
        kept = without(worker, mine, mine._replace(written=True))
        after = after.with_worker(w, kept)._replace(faults=world.faults - 1)
        yield Step(name + "; the answer is lost", after, wrote=hold)


def _is(one: Hold, other: Hold) -> bool:
    """The same claim in the same phase, whatever has become of it."""
    return one[:4] == other[:4] and one.written == other.written


def work_left(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """Of a twin: the work is committed after the end was recorded."""
    worker = world.workers[w]
    for hold in worker.holds:
        if hold.phase == "work left" and worker.mode == "up":
            after = world.with_worker(w, without(worker, hold))
            worked = world.jobs[hold.job]._replace(worked=True)
            yield Step(f"worker {w} commits the work", after.with_job(hold.job, worked))


def give_back(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """`give_back()`: a job that is stopped, or has waited too long. No failure. Waits for a row that is locked."""
    worker = world.workers[w]
    if worker.mode != "up":
        return
    for hold in worker.holds:
        if hold.phase != "run" or world.is_locked(hold.job):
            continue
        if not passes(world, rules, w, hold):
            yield Step(f"worker {w} has lost job {hold.job}", world.with_worker(w, without(worker, hold)))
            continue
        freed = world.jobs[hold.job]._replace(owner=NOBODY)
        after = claim_is_over(world, hold.job).with_job(hold.job, freed)
        after = after._replace(past=world.jobs if rules.relaxed else None)
        mine = next(each for each in after.workers[w].holds if _is(each, hold))
        after = after.with_worker(w, without(after.workers[w], mine))
        yield Step(f"worker {w} gives job {hold.job} back", after, wrote=hold)
