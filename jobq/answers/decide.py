"""From the facts about a job to the one cause: a pure decision."""

from __future__ import annotations

from jobq.answers.causes import Cause, Reason, Why
from jobq.answers.facts import Facts
from jobq.answers.holders import command_to_run, held_by, some
from jobq.answers.waiting import reasons
from jobq.model import State
from jobq.spans import ago, moment, span

ENDS = {State.DONE: Cause.DONE, State.DEAD: Cause.DEAD, State.CANCELLED: Cause.CANCELLED}


def decide(facts: Facts) -> Why:
    """Of a waiting job everything that holds it up, in the order that `jobq.answers.waiting` says."""
    first, *others = _reasons(facts)
    return Why(facts.job.id, facts.job.state, facts.now, first, tuple(others))


def _reasons(facts: Facts) -> list[Reason]:
    if facts.job.state in ENDS:
        return [_ended(facts)]
    if facts.job.state is State.RUNNING:
        return [_running(facts)]
    found = reasons(facts)
    if facts.head is not None and any(reason.cause is Cause.HEAD for reason in found):
        return [_with_head(facts, reason) if reason.cause is Cause.HEAD else reason for reason in found]
    return found or [_due(facts)]


def _with_head(facts: Facts, reason: Reason) -> Reason:
    """Why another job comes first is only half of the answer: the other half is why that one is not done yet."""
    head = facts.for_head()
    return Reason(reason.cause, f"{reason.words}; {decide(head)}", None, reason.command, reason.jobs)


def _ended(facts: Facts) -> Reason:
    job = facts.job
    since = f"since {moment(job.finished_at)}, {ago(job.finished_at, facts.now)}"
    how = f": {job.outcome}" if job.outcome else ""
    command = None if job.state is State.DONE else f"jobq retry {job.id}"
    return Reason(ENDS[job.state], f"is {job.state} {since}{how}", command=command)


def _running(facts: Facts) -> Reason:
    job, worker = facts.job, facts.worker(facts.job.worker_id)
    since = f"since {moment(job.attempted_at)}, {ago(job.attempted_at, facts.now)}"
    if worker is not None and worker.lease_until > facts.now:
        beat = f"whose last beat was {ago(worker.last_beat, facts.now)}"
        if worker.ahead:
            beat += f" and which holds {worker.running} and runs {worker.concurrency} at a time: it may wait there"
        return Reason(
            Cause.RUNNING,
            f"runs {since}: attempt {job.attempt}, held by worker {worker.name}, {beat}",
            command=f"jobq cancel {job.id} --running",
        )
    lost = f"was started {since}, and lost: it is held by {held_by(facts, job.worker_id)}"
    if facts.live:
        return Reason(Cause.LOST, f"{lost}; a live worker is about to rescue it", command="jobq workers")
    return Reason(Cause.LOST, f"{lost}, and there is no live worker to rescue it", command=command_to_run())


def _due(facts: Facts) -> Reason:
    """Nothing holds it up: what is left to look at is the workers."""
    able = [worker for worker in facts.live if worker.serves(facts.job.queue) and facts.job.kind in worker.kinds]
    beats = some(f"{worker.name}, last beat {ago(worker.last_beat, facts.now)}" for worker in able)
    waited = span(facts.now - facts.job.run_at)
    words = f"is due for {waited} and nothing holds it up: a worker takes it at its next look ({beats})"
    return Reason(Cause.DUE, words, command="jobq workers")
