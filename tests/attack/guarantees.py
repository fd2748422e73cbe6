"""The guarantees of DESIGN.md as questions to the database: each answers with its violations, so `[]` is what is right.

Some need more than jobq's tables: `effects`, where each run of a handler writes itself down (`EFFECTS`, or any table
with those columns); `books`, what handlers have written inside `current().transaction()`; `JOURNAL`, an append-only
record of every committed change (tests/attack/journal.py). Everything reads one snapshot: ask in one transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from evidence import BOOKS, EFFECTS, JOURNAL, Violation, in_transaction, of_another, runs_with_queues
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from jobq.tables import all_jobs, finished_jobs, jobs, kinds, queues, slots, workers


def lost(connection: sa.Connection, committed: Collection[int]) -> list[Violation]:
    """G1. Of the ids whose enqueue has committed, those in neither table. Nothing may have been cleaned meanwhile."""
    wanted = _unnested(committed)
    missing = sa.select(wanted.c.id).where(~sa.exists().where(all_jobs.c.id == wanted.c.id))
    return _found(connection, "G1", missing, "committed, and in neither table")


def vanished(connection: sa.Connection) -> list[Violation]:
    """G1, by the journal: rows of `jobs` that were deleted without an end in the same transaction."""
    gone, end = JOURNAL.alias(), JOURNAL.alias()
    ends = in_transaction(gone, end, "finished_jobs", "INSERT")
    missing = sa.select(gone.c.job_id).where(gone.c.relation == "jobs", gone.c.op == "DELETE", ~ends)
    return _found(connection, "G1", missing, "deleted without an end")


def ghosts(
    connection: sa.Connection, rolled_back: Collection[int], effects: sa.FromClause | None = EFFECTS
) -> list[Violation]:
    """G2. Of the ids of transactions (or savepoints) that were rolled back, those that exist or have run."""
    wanted = _unnested(rolled_back)
    traces = [sa.exists().where(all_jobs.c.id == wanted.c.id)]
    if effects is not None:
        traces.append(sa.exists().where(effects.c.job_id == wanted.c.id))
    return _found(connection, "G2", sa.select(wanted.c.id).where(sa.or_(*traces)), "rolled back, and it exists or ran")


def ended_and_open(connection: sa.Connection) -> list[Violation]:
    """G3. Jobs that are in both tables."""
    both = sa.select(jobs.c.id).join(finished_jobs, finished_jobs.c.id == jobs.c.id)
    return _found(connection, "G3", both, "open and ended at once")


def ended_twice(connection: sa.Connection, by_hand: Collection[int] = ()) -> list[Violation]:
    """G3, by the journal: ends of one attempt beyond the first; jobs opened again whose id is not `by_hand`."""
    inserts = sa.select(JOURNAL.c.job_id).where(JOURNAL.c.op == "INSERT", JOURNAL.c.job_id.not_in(by_hand))
    more = sa.func.count() > 1
    ends = inserts.where(JOURNAL.c.relation == "finished_jobs").group_by(JOURNAL.c.job_id, JOURNAL.c.attempt)
    opened = inserts.where(JOURNAL.c.relation == "jobs").group_by(JOURNAL.c.job_id)
    found = _found(connection, "G3", ends.having(more), "one attempt has ended twice")
    return found + _found(connection, "G3", opened.having(more), "opened again, by nobody's hand")


def stale_ends(connection: sa.Connection, effects: sa.FromClause = EFFECTS) -> list[Violation]:
    """G4. Ends and errors written by another run than that of their attempt, and ends that a later run was passed by.

    Wants handlers whose outcome, or whose exception's text, is their `run` as text.
    """
    errors = sa.func.jsonb_array_elements(all_jobs.c.errors).table_valued(sa.column("value", JSONB)).render_derived()
    run = sa.cast(effects.c.run, sa.Text)
    ends = sa.select(all_jobs.c.id).join(effects, all_jobs.c.outcome == sa.literal("ok: ") + run)
    failed = sa.select(all_jobs.c.id).select_from(all_jobs).join(errors, sa.true())
    failures = failed.join(effects, errors.c.value["message"].astext == run)
    attempt = sa.cast(errors.c.value["attempt"].astext, sa.Integer)
    passed = sa.select(finished_jobs.c.id).join(effects, effects.c.job_id == finished_jobs.c.id)
    return [
        *_found(connection, "G4", ends.where(of_another(effects, all_jobs.c.attempt)), "ended by another claim's run"),
        *_found(connection, "G4", failures.where(of_another(effects, attempt)), "failed by another claim's run"),
        *_found(connection, "G4", passed.where(effects.c.attempt > finished_jobs.c.attempt), "a later claim had begun"),
    ]


def overlaps(
    connection: sa.Connection, effects: sa.FromClause = EFFECTS, excused: Collection[int] = ()
) -> list[Violation]:
    """G5. Runs that began while an earlier run of the job went on, in a process that was neither cut off nor frozen.

    Wants `ended_at`. `excused`: the pids that were cut off, killed or frozen beyond their lease.
    """
    first, second = effects.alias(), effects.alias()
    at_once = sa.and_(second.c.job_id == first.c.job_id, second.c.run != first.c.run, second.c.at >= first.c.at)
    together = sa.select(first.c.job_id).join(second, at_once)
    wrong = together.where(second.c.at < first.c.ended_at, first.c.pid.not_in(excused))
    return _found(connection, "G5", wrong, "two runs at once, with nothing to excuse it")


def early(connection: sa.Connection, effects: sa.FromClause | None = None) -> list[Violation]:
    """G6. Jobs whose last claim (with `effects`: run) came before run_at. `at` must be by the database's clock."""
    claimed = sa.select(all_jobs.c.id).where(all_jobs.c.worker_id.is_not(None))
    found = _found(connection, "G6", claimed.where(all_jobs.c.attempted_at < all_jobs.c.run_at), "claimed too early")
    if effects is None:
        return found
    same = sa.and_(effects.c.job_id == all_jobs.c.id, effects.c.attempt == all_jobs.c.attempt)
    begun = claimed.join(effects, same).where(effects.c.at < all_jobs.c.run_at)
    return found + _found(connection, "G6", begun, "begun too early")


def too_many_failures(connection: sa.Connection) -> list[Violation]:
    """G7. More failures than max_attempts, an open job that has none left, and dead jobs that lack an error."""
    of_kind = sa.select(kinds.c.max_attempts).where(kinds.c.kind == all_jobs.c.kind).scalar_subquery()
    most = sa.func.coalesce(all_jobs.c.max_attempts, of_kind, 5)
    is_open, is_dead = all_jobs.c.finished_at.is_(None), all_jobs.c.state == "dead"
    kept = sa.func.jsonb_array_length(all_jobs.c.errors)
    every = sa.select(all_jobs.c.id)
    return [
        *_found(connection, "G7", every.where(all_jobs.c.failures > most), "more failures than attempts"),
        *_found(connection, "G7", every.where(is_open, all_jobs.c.failures >= most), "open, with no attempt left"),
        *_found(connection, "G7", every.where(is_dead, kept < sa.func.least(all_jobs.c.failures, 25)), "errors lost"),
    ]


def shared_keys(connection: sa.Connection) -> list[Violation]:
    """G8. Open jobs whose unique key another open job holds, too."""
    other = jobs.alias()
    both = sa.exists().where(other.c.unique_key == jobs.c.unique_key, other.c.id != jobs.c.id)
    return _found(connection, "G8", sa.select(jobs.c.id).where(both), "its unique key is held twice")


def over_the_limit(connection: sa.Connection) -> list[Violation]:
    """G9. Limited queues that run more jobs than their limit now. Not after a limit was lowered while jobs ran."""
    running = sa.select(jobs.c.queue, sa.func.count().label("n")).where(jobs.c.worker_id.is_not(None))
    counted = running.group_by(jobs.c.queue).subquery()
    wrong = sa.select(queues.c.name, counted.c.n).join(counted, counted.c.queue == queues.c.name)
    rows = connection.execute(wrong.where(counted.c.n > _limit()))
    return [Violation("G9", None, f"queue {row.name} runs {row.n} jobs") for row in rows]


def ran_over_the_limit(
    connection: sa.Connection, effects: sa.FromClause = EFFECTS, excused: Collection[int] = ()
) -> list[Violation]:
    """G9. Runs that began while as many others of their limited queue went on. Wants `ended_at`; excused: see G5."""
    ran, other = runs_with_queues(effects, excused), runs_with_queues(effects, excused)
    at_once = sa.and_(other.c.queue == ran.c.queue, other.c.at <= ran.c.at, other.c.ended_at > ran.c.at)
    pairs = sa.select(ran.c.job_id).join(other, at_once).join(queues, queues.c.name == ran.c.queue)
    crowd = pairs.group_by(ran.c.run, ran.c.job_id, queues.c.name).having(sa.func.count() > _limit())
    return _found(connection, "G9", crowd, "it began beyond the limit of its queue")


def out_of_order(connection: sa.Connection, effects: sa.FromClause = EFFECTS) -> list[Violation]:
    """G9. Jobs of a FIFO queue whose first run began before that of one with a lower id, of their priority.

    Wants jobs that one connection has enqueued, without a delay.
    """
    first = (
        sa.select(effects.c.job_id, sa.func.min(effects.c.at).label("at"), all_jobs.c.queue, all_jobs.c.priority)
        .join(all_jobs, all_jobs.c.id == effects.c.job_id)
        .join(queues, sa.and_(queues.c.name == all_jobs.c.queue, queues.c.fifo))
        .group_by(effects.c.job_id, all_jobs.c.queue, all_jobs.c.priority)
        .cte("first")
    )
    latest = sa.func.max(first.c.at).over(partition_by=[first.c.queue, first.c.priority], order_by=first.c.job_id)
    ordered = sa.select(first.c.job_id, first.c.at, latest.label("latest")).subquery()
    late = sa.select(ordered.c.job_id).where(ordered.c.at < ordered.c.latest)
    return _found(connection, "G9", late, "a later job of its FIFO queue began before it")


def ticks_twice(connection: sa.Connection) -> list[Violation]:
    """G10. Jobs of one schedule's one tick, beyond the first."""
    schedule, tick = all_jobs.c.meta["schedule"].astext, all_jobs.c.meta["tick"].astext
    of_tick = sa.select(sa.func.max(all_jobs.c.id)).where(tick.is_not(None))
    twice = of_tick.group_by(schedule, tick).having(sa.func.count() > 1)
    return _found(connection, "G10", twice, "a second job of its tick")


def orphans(connection: sa.Connection) -> list[Violation]:
    """G11. Running jobs, and slots, of workers that are gone or whose lease is over.

    To be asked a lease and a rescue interval after the last fault, while at least one worker lives.
    """

    def lacks_a_live(worker_id: Any) -> sa.ColumnElement[bool]:
        alive = sa.exists().where(workers.c.id == worker_id, workers.c.lease_until >= sa.func.now())
        return sa.and_(worker_id.is_not(None), ~alive)

    taken = sa.select(slots.c.queue, slots.c.n).where(lacks_a_live(slots.c.worker_id))
    found = _found(connection, "G11", sa.select(jobs.c.id).where(lacks_a_live(jobs.c.worker_id)), "held by nobody")
    return found + [Violation("G11", None, f"slot {row.n} of {row.queue}") for row in connection.execute(taken)]


def cleaned_too_early(connection: sa.Connection) -> list[Violation]:
    """G12, by the journal: ended jobs that were deleted before `expires_at`, and not to be opened again by hand."""
    gone, back = JOURNAL.alias(), JOURNAL.alias()
    deleted = sa.and_(gone.c.relation == "finished_jobs", gone.c.op == "DELETE", gone.c.at < gone.c.expires_at)
    wrong = sa.select(gone.c.job_id).where(deleted, ~in_transaction(gone, back, "jobs", "INSERT"))
    return _found(connection, "G12", wrong, "deleted before its time")


def halves(connection: sa.Connection, kind: str, books: sa.FromClause = BOOKS) -> list[Violation]:
    """G13. Work in `current().transaction()` without its completion, completions without it, and work done twice.

    Wants handlers of `kind` that write one row (job_id, attempt) in that transaction, whatever else they do.
    """
    same = sa.and_(finished_jobs.c.id == books.c.job_id, finished_jobs.c.attempt == books.c.attempt)
    alone = sa.select(books.c.job_id).where(~sa.exists().where(same, finished_jobs.c.state == "done"))
    done = sa.select(finished_jobs.c.id).where(finished_jobs.c.kind == kind, finished_jobs.c.state == "done")
    twice = sa.select(books.c.job_id).group_by(books.c.job_id).having(sa.func.count() > 1)
    return [
        *_found(connection, "G13", alone, "work without its completion"),
        *_found(connection, "G13", done.where(~sa.exists().where(same)), "completion without its work"),
        *_found(connection, "G13", twice, "its work was committed twice"),
    ]


def at_any_time(connection: sa.Connection) -> list[Violation]:
    """What must hold in every snapshot of any database, and needs nothing but jobq's own tables."""
    checks = (ended_and_open, early, too_many_failures, shared_keys, over_the_limit, ticks_twice)
    return [each for check in checks for each in check(connection)]


def by_the_journal(connection: sa.Connection, by_hand: Collection[int] = ()) -> list[Violation]:
    """What the journal of all changes can show: G1, G3, G12."""
    return [*vanished(connection), *ended_twice(connection, by_hand), *cleaned_too_early(connection)]


def _found(connection: sa.Connection, guarantee: str, ids: sa.Select[Any], what: str) -> list[Violation]:
    rows: Sequence[int] = connection.scalars(ids).all()
    return [Violation(guarantee, id_, what) for id_ in rows]


def _unnested(ids: Collection[int]) -> sa.TableValuedAlias:
    array = sa.literal(list(ids), ARRAY(sa.BigInteger))
    return sa.func.unnest(array).table_valued(sa.column("id", sa.BigInteger)).render_derived(name="wanted")


def _limit() -> sa.ColumnElement[int]:
    """How many jobs the queue may run at a time; NULL: as many as there are."""
    return sa.case((queues.c.fifo, 1), else_=queues.c.concurrency)
