"""Leases: frozen, run out, renewed, lost, taken anew; and the rescue."""

from __future__ import annotations

from collections.abc import Iterator

from model.rules import Rules
from model.state import NOBODY, Hold, Job, Step, Worker, World, claim_is_over


def expire(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """The lease runs out by the database's clock: of a process that does not beat."""
    worker = world.workers[w]
    if worker.row == "live" and worker.mode in ("cut", "down"):
        holds = tuple(sorted(_outlived(hold) for hold in worker.holds))
        yield Step(f"worker {w}'s lease runs out", world.with_worker(w, worker._replace(row="over", holds=holds)))


def _outlived(hold: Hold) -> Hold:
    """A claim whose lease ran out while it was begun, or still to be begun."""
    return hold if hold.phase in ("good", "bad") else hold._replace(excused=True)


def thaw(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """SIGCONT, or the network is back: it goes on where it was, and has noticed nothing."""
    worker = world.workers[w]
    if worker.mode == "cut":
        yield Step(f"worker {w} goes on", world.with_worker(w, worker._replace(mode="up")))


def beat(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """`beat()`: the row is there, so it is alive again; or `lose`, when its own clock is asked first."""
    worker = world.workers[w]
    if worker.mode != "up" or worker.row == "live":
        return
    if worker.row == "over":
        yield Step(f"worker {w}'s heartbeat renews its lease", world.with_worker(w, worker._replace(row="live")))
    ended = tuple(hold for hold in worker.holds if hold.phase in ("good", "bad"))
    lost = worker._replace(mode="lost", holds=ended)
    yield Step(f"worker {w} knows that its lease is lost and stops what runs", world.with_worker(w, lost))


def notice(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """`still_held()`: a handler whose job is no longer ours is stopped. Reads the row by the fence."""
    worker = world.workers[w]
    if worker.mode != "up":
        return
    for n, hold in enumerate(worker.holds):
        job = world.jobs[hold.job]
        is_mine = job.place == "open" and job.owner == w and not hold.old and job.attempt == hold.attempt
        if hold.phase == "run" and not is_mine:
            rest = worker._replace(holds=worker.holds[:n] + worker.holds[n + 1 :])
            yield Step(f"worker {w} stops job {hold.job}, which it has lost", world.with_worker(w, rest))


def join(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """`leave()` and `give_back_unknown()` under the former id, in one transaction; then `register()` of a new one.

    In that order: the delete waits for a claim in flight, and a claim that comes later finds no row.
    """
    worker = world.workers[w]
    theirs = [j for j, job in enumerate(world.jobs) if job.owner == w]
    if worker.mode != "lost" or any(world.is_locked(j) for j in theirs):
        return
    after = world
    for j in theirs:
        after = claim_is_over(after, j).with_job(j, world.jobs[j]._replace(owner=NOBODY))
    holds = tuple(sorted(hold._replace(old=True) for hold in after.workers[w].holds))
    anew = after.workers[w]._replace(mode="up", row="live", unsure=0, late=False, holds=holds)
    yield Step(f"worker {w} joins under a new id", after.with_worker(w, anew)._replace(past=None))


def rescue(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """`delete_lost_workers()`, `gone_workers()`, `take_back()`, `bury()`, `left_behind()`: several statements of one
    transaction. Until its end it has the lost workers' rows, so that claims of theirs wait, and find no row then.
    """
    if world.workers[w].mode == "up":
        after = rescued(world, rules, w)
        if after != world:
            yield Step(f"worker {w} rescues", after)


def rescued(world: World, rules: Rules, w: int, *, everywhere: bool = False) -> World:
    """One pass of worker w's rescuer; `w` NOBODY: of a worker that has just come."""
    lost = [v for v, worker in enumerate(world.workers) if worker.row == "over"]
    looks = everywhere or (w != NOBODY and world.workers[w].look)
    if not lost and not looks:
        return world
    after = world
    for v in lost:
        after = after.with_worker(v, after.workers[v]._replace(row="gone"))
    gone = [j for j, job in enumerate(world.jobs) if job.owner != NOBODY and after.workers[job.owner].row == "gone"]
    locked = [j for j in gone if world.is_locked(j)]
    if locked and not rules.rescue_skips_locked:
        return world  # it waits, and so does everything that it would have rescued
    for j in gone:
        if j not in locked:
            after = claim_is_over(after, j).with_job(j, _taken_back(world.jobs[j], rules))
    if w != NOBODY:
        look = bool(locked) and rules.rescue_looks_again
        after = after.with_worker(w, after.workers[w]._replace(look=look))
    return after._replace(past=None)


def _taken_back(job: Job, rules: Rules) -> Job:
    back = job._replace(owner=NOBODY, failures=job.failures + 1)
    is_spent = back.failures >= rules.max_attempts and rules.rescue_buries_the_spent
    return back._replace(place="dead") if is_spent else back


def hasty_rescue(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """Of a twin: one statement, whose snapshot does not show it a claim that was in flight as it began."""
    if world.workers[w].mode != "up":
        return
    for v, worker in enumerate(world.workers):
        if worker.row == "over":
            for j, after, job in _claims_in_flight(world, rules, v, worker):
                sent = after.with_worker(v, worker._replace(row="gone"))
                yield Step(f"worker {w} rescues while worker {v}'s claim of job {j} is in flight", sent, took=job)


def _claims_in_flight(world: World, rules: Rules, v: int, worker: Worker) -> Iterator[tuple[int, World, Job]]:
    from model.claiming import _claimable

    if worker.late:
        yield from _claimable(world.with_worker(v, worker._replace(late=False)), rules, v)
