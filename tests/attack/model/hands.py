"""Faults, and what operators do."""

from __future__ import annotations

from collections.abc import Iterator

from model.leasing import rescued
from model.rules import Rules
from model.state import ENDED, NOBODY, Hold, Job, Step, Worker, World, claim_is_over


def fault(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """SIGSTOP or a cut network; SIGKILL: what was not committed is rolled back by the server."""
    worker = world.workers[w]
    if not world.faults or worker.mode == "down":
        return
    fewer = world._replace(faults=world.faults - 1)
    if worker.mode == "up":
        yield Step(f"worker {w} is frozen", fewer.with_worker(w, worker._replace(mode="cut")))
    dead = Worker(mode="down", row=worker.row, late=worker.late)
    yield Step(f"worker {w} is killed", fewer.with_worker(w, dead))


def start(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """Another process, under an id of its own, in the place of one that is dead and of which nothing is left.

    The first pass of its rescuer looks everywhere.
    """
    worker = world.workers[w]
    if worker.mode == "down" and worker.row == "gone" and not any(job.owner == w for job in world.jobs):
        yield Step(f"worker {w} starts", rescued(world.with_worker(w, Worker()), rules, w, everywhere=True))


def stop(world: World, rules: Rules, w: int) -> Iterator[Step]:
    """SIGTERM: what has ended was recorded; `leave()` and `give_back()`, of all that carries the id if it is unsure."""
    worker = world.workers[w]
    if worker.mode != "up" or not world.hands or any(hold.phase != "run" for hold in worker.holds):
        return
    known = {hold.job for hold in worker.holds if hold.true}
    is_unsure = worker.unsure >= (1 if rules.leaves_nothing_while_unsure else 2)
    theirs = [j for j, job in enumerate(world.jobs) if job.owner == w and (is_unsure or j in known)]
    if any(world.is_locked(j) for j in theirs):
        return
    after = world
    for j in theirs:
        after = claim_is_over(after, j).with_job(j, world.jobs[j]._replace(owner=NOBODY))
    gone = Worker(mode="down", row="gone", late=worker.late)
    yield Step(f"worker {w} stops", after.with_worker(w, gone)._replace(hands=world.hands - 1, past=None))


def operate(world: World, rules: Rules, j: int) -> Iterator[Step]:
    """`cancel_ids()`, also of what runs, and `retry_ids()`. They wait for a row that is locked."""
    job = world.jobs[j]
    if not world.hands or world.is_locked(j):
        return
    fewer = world._replace(hands=world.hands - 1, past=None)
    if job.place in ENDED:
        attempt = job.attempt if rules.retry_keeps_attempt else 0
        again = Job(attempt=attempt)
        yield Step(f"job {j} is retried by hand", fewer.with_job(j, again))
    else:
        ended = job._replace(place="cancelled", owner=NOBODY)
        word = "is cancelled" if job.owner == NOBODY else "is cancelled while it runs"
        yield Step(f"job {j} {word}", claim_is_over(fewer, j, excused=True).with_job(j, ended))


def wait(world: World, rules: Rules, j: int) -> Iterator[Step]:
    """The job's run_at comes."""
    job = world.jobs[j]
    if job.place == "open" and not job.due:
        yield Step(f"job {j} becomes due", world.with_job(j, job._replace(due=True)))


def crash(world: World, rules: Rules) -> Iterator[Step]:
    """The server crashes and is back: every transaction is rolled back, every answer under way lost.

    With relaxed commits the last one may be gone: the claim or the end whose statement was answered already.
    """
    if not world.faults:
        return
    cut = world._replace(workers=tuple(_cut(worker, rules) for worker in world.workers), past=None)
    cut = cut._replace(faults=world.faults - 1)
    yield Step("the server crashes", cut)
    if world.past is not None:
        yield Step("the server crashes, and the last commit is gone", _back_to(cut, world.past))


def _cut(worker: Worker, rules: Rules) -> Worker:
    was_sent = any(hold.phase == "sent" for hold in worker.holds)
    holds = tuple(
        sorted(
            hold._replace(phase="bad", excused=False) if hold.phase == "open" else hold
            for hold in worker.holds
            if hold.phase != "sent"
        )
    )
    if worker.mode in ("up", "cut") and rules.relaxed and rules.new_id_after_a_crash:
        ended = tuple(hold for hold in holds if hold.phase in ("good", "bad"))
        return worker._replace(mode="lost", holds=ended, late=False)
    is_unsure = was_sent or (rules.relaxed and rules.unsure_after_a_crash)
    return worker._replace(holds=holds, late=False, unsure=2 if is_unsure and worker.mode != "down" else worker.unsure)


def _back_to(world: World, past: tuple[Job, ...]) -> World:
    """Rows as they were; whoever has a job of one that changes has it no more, and who had ended it has it again."""
    workers = tuple(
        worker._replace(holds=tuple(sorted(_as_before(hold, w, world.jobs, past) for hold in worker.holds)))
        for w, worker in enumerate(world.workers)
    )
    return world._replace(jobs=past, workers=workers)


def _as_before(hold: Hold, w: int, jobs: tuple[Job, ...], past: tuple[Job, ...]) -> Hold:
    row = past[hold.job]
    if row == jobs[hold.job]:
        return hold
    is_again = row.owner == w and row.attempt == hold.attempt and not hold.old
    runs = hold.phase in ("sent", "run", "open")
    return hold._replace(true=is_again, written=False, excused=runs and (hold.excused or not is_again))
