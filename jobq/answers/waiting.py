"""What keeps a waiting job from being claimed: each look gives a reason, or none. Pure.

In this order, of which the first reason is the one that is named: what a person has to mend; what ends at a time, the
latest first, for the others will have ended by then; what ends by itself, at a time that nobody knows. Removing any
but the first would not let the job run sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from jobq.answers.causes import Cause, Reason
from jobq.answers.facts import MOST_BEFORE, Facts, WorkerFacts
from jobq.answers.holders import command_to_run, slot_held, some
from jobq.spans import ago, moment, pause_end

LONGEST_ERROR = 200  # characters
Look = Callable[[Facts], "Reason | None"]


def reasons(facts: Facts) -> list[Reason]:
    """Everything that holds the job up, in that order; nothing, when a worker's next look takes it."""
    timed = [reason for look in TIMED if (reason := look(facts)) is not None]
    timed.sort(key=lambda reason: reason.until or facts.now, reverse=True)
    others = [reason for look in OTHERS if (reason := look(facts)) is not None] if _is_due(facts) else []
    return [*_for_people(facts), *timed, *others]


def _is_due(facts: Facts) -> bool:
    return facts.job.run_at <= facts.now


def _is_later_in_order(facts: Facts) -> bool:
    """Whether its queue is FIFO and another job comes first: what holds that one up is told with it."""
    return facts.queue.fifo and facts.head is not None and facts.head.id != facts.job.id


def _able(facts: Facts) -> list[WorkerFacts]:
    return [one for one in facts.live if one.serves(facts.job.queue) and facts.job.kind in one.kinds]


# ---- what a person has to mend


def _for_people(facts: Facts) -> Iterator[Reason]:
    job = facts.job
    if job.own_max_attempts is not None and job.failures >= job.own_max_attempts:
        words = f"will never be claimed: {job.failures} failures are recorded, max_attempts is {job.own_max_attempts}"
        yield Reason(Cause.ATTEMPTS_USED_UP, words, command=f"jobq cancel {job.id} && jobq retry {job.id}")
    if not facts.live:
        yield Reason(Cause.NO_WORKER, f"waits: there is no live worker{_last_seen(facts)}", command=command_to_run())
        return
    if not any(one.serves(job.queue) for one in facts.live):
        yield _no_worker_for_queue(facts)
        if not any(job.kind in one.kinds for one in facts.live):
            yield _no_handler(facts)
    elif not _able(facts):
        yield _no_handler(facts)


def _last_seen(facts: Facts) -> str:
    if not facts.workers:
        return ""
    last = max(facts.workers, key=lambda one: one.lease_until)
    return f" (the lease of {last.name} ran out {ago(last.lease_until, facts.now)})"


def _no_worker_for_queue(facts: Facts) -> Reason:
    queue = facts.job.queue
    others = some(f"{one.name} serves {some(sorted(one.queues or ()))}" for one in facts.live)
    words = f"waits: no live worker serves its queue {queue} ({others})"
    return Reason(Cause.NO_WORKER_FOR_QUEUE, words, command=command_to_run("--queues", queue))


def _no_handler(facts: Facts) -> Reason:
    """Of the workers that serve its queue; of any, where none does."""
    job = facts.job
    serve = [one.name for one in facts.live if one.serves(job.queue)]
    knows = [one.name for one in facts.live if job.kind in one.kinds]
    words = (
        f"waits: no live worker{' of its queue ' + job.queue if serve else ''} has a handler for its kind {job.kind}"
    )
    details = [f"{some(serve)} {'serves' if len(serve) == 1 else 'serve'} the queue"] if serve else []
    know = "has a handler, and serves" if len(knows) == 1 else "have a handler, and serve"
    details += [f"{some(knows)} {know} other queues"] if knows else []
    said = f" ({'; '.join(details)})" if details else ""
    return Reason(Cause.NO_HANDLER, f"{words}{said}", command=command_to_run())


# ---- what ends at a time


def _paused(facts: Facts) -> Reason | None:
    until, queue = facts.queue.paused_until, facts.job.queue
    if until is None:
        return None
    left = "" if pause_end(until) == pause_end(None) else f", {ago(until, facts.now)}"
    because = f", because: {facts.queue.pause_reason}" if facts.queue.pause_reason else ""
    words = f"waits: its queue {queue} is paused {pause_end(until)}{left}{because}"
    return Reason(Cause.PAUSED, words, until, f"jobq resume {queue}")


def _scheduled(facts: Facts) -> Reason | None:
    job = facts.job
    if _is_due(facts):
        return None
    when = _when(job.run_at, facts)
    if job.has_just_failed:
        return Reason(Cause.RETRY, _retry(facts, when), job.run_at)
    if job.attempt:
        words = f"was put off after attempt {job.attempt} (by Snooze, or given back): it is due {when}"
        return Reason(Cause.SCHEDULED, words, job.run_at)
    return Reason(Cause.SCHEDULED, f"is scheduled for {when}", job.run_at)


def _throttled(facts: Facts) -> Reason | None:
    """No slot is free and ready, and one that is free will be. In a FIFO queue a retry waits so too."""
    at, queue = _ready_at(facts), facts.job.queue
    if at is None or _is_later_in_order(facts):
        return None
    when = _when(at, facts)
    if facts.queue.fifo and facts.job.has_just_failed and _is_due(facts):
        return Reason(Cause.RETRY, f"{_retry(facts, when)}; it keeps its place in queue {queue}", at)
    by = "its throttle, or the retry of a job before" if facts.queue.fifo else "its throttle"
    words = f"waits: its queue {queue} is held back until {when}, by {by}"
    return Reason(Cause.THROTTLED, words, at)


def _ready_at(facts: Facts) -> datetime | None:
    """When the first free slot within the limit is ready; None when one is, or all are taken."""
    limit = facts.queue.limit
    if limit is None:
        return None
    free = [slot.ready_at for slot in facts.slots if slot.worker_id is None and slot.n <= limit]
    times = [at for at in free if at is not None and at > facts.now]
    return min(times) if times and len(times) == len(free) else None


def _retry(facts: Facts, when: str) -> str:
    job = facts.job
    of = f" of {job.max_attempts}" if job.max_attempts else ""
    said = f"{job.failure.error}: {job.failure.message}" if job.failure is not None else "an error"
    return f"waits for retry {job.failures + 1}{of}, at {when}, after {_short(said)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_ERROR else f"{line[:LONGEST_ERROR]}..."


def _when(at: datetime, facts: Facts) -> str:
    return f"{moment(at)}, {ago(at, facts.now)}"


# ---- what ends by itself, at a time that nobody knows


def _locked(facts: Facts) -> Reason | None:
    if facts.job.locked_by is None:
        return None
    words = f"waits: another session has locked its row, and claims pass it by (process {facts.job.locked_by})"
    return Reason(Cause.LOCKED, words)


def _head(facts: Facts) -> Reason | None:
    if facts.head is None or not _is_later_in_order(facts):
        return None
    head, queue = facts.head.id, facts.job.queue
    if facts.before == 1:
        words = f"waits: job {head} is before it in its FIFO queue {queue}"
    else:
        are_before = f"{_count(facts.before)} jobs are before it in its FIFO queue {queue}"
        words = f"waits: {are_before}, of which job {head} comes first"
    return Reason(Cause.HEAD, words, command=f"jobq why {head}", jobs=(head,))


def _limit(facts: Facts) -> Reason | None:
    """No slot within the limit is free; after it was lowered none is, while one beyond it is taken."""
    limit, queue = facts.queue.limit, facts.job.queue
    if limit is None or _is_later_in_order(facts):
        return None
    taken = [slot for slot in facts.slots if slot.worker_id is not None]
    if any(slot.worker_id is None and slot.n <= limit for slot in facts.slots) and all(s.n <= limit for s in taken):
        return None
    is_worth_more = not facts.queue.fifo and not all(slot.has_ended for slot in taken)
    command = f"jobq queue set {queue} --concurrency {limit + 1}" if is_worth_more else None
    if not taken:
        words = f"waits: its queue {queue} has a limit of {limit} and no slots yet; a live worker makes them within 5s"
        return Reason(Cause.LIMIT, words)
    runs = some(slot_held(facts, slot) for slot in taken)
    words = f"waits: its queue {queue} is at its limit of {limit} at a time: {runs}"
    return Reason(Cause.LIMIT, words, command=command, jobs=tuple(s.job_id for s in taken if s.job_id is not None))


def _in_line(facts: Facts) -> Reason | None:
    if not facts.before or facts.queue.fifo:
        return None
    come = "1 due job comes" if facts.before == 1 else f"{_count(facts.before)} due jobs come"
    return Reason(Cause.IN_LINE, f"waits for its turn: {come} before it in queue {facts.job.queue}{_room(facts)}")


def _busy(facts: Facts) -> Reason | None:
    able = _able(facts)
    if not able or not all(one.is_full for one in able):
        return None
    return Reason(Cause.BUSY, f"waits for room: all that can run it are full{_room(facts)}", command=command_to_run())


def _room(facts: Facts) -> str:
    able = _able(facts)
    if not able:
        return ""
    return f" ({some(map(_load, able))})"


def _load(worker: WorkerFacts) -> str:
    runs = f"{worker.name} runs {worker.running - worker.ahead} of {worker.concurrency or '-'}"
    return f"{runs} and has claimed {worker.ahead} ahead" if worker.ahead else runs


def _count(before: int) -> str:
    return f"more than {MOST_BEFORE}" if before > MOST_BEFORE else str(before)


TIMED: tuple[Look, ...] = (_paused, _scheduled, _throttled)
OTHERS: tuple[Look, ...] = (_locked, _head, _limit, _in_line, _busy)
