"""Looking at jobs and repairing them, in the caller's transaction; the command line calls the same functions."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from jobq.bind import AsyncBind, Bind, connection_of, over
from jobq.model import Job
from jobq.notify import channel_to_tell
from jobq.reading import job_of
from jobq.refusals import Refusal, Repaired, keys_of, refuse_cancel, refuse_retry
from jobq.report import Stats, WorkerRow, worker_of
from jobq.retention import KEEP_ENDED
from jobq.statements import admin as statements
from jobq.statements import stats as counting
from jobq.statements.choose import Predicate
from jobq.statements.patience import answer_within
from jobq.store.counting import counts
from jobq.tally import stats_of
from jobq.which import Which, checked_id, checked_limit, ids_in, predicates_in

BATCH = 500  # rows that a streamed reading fetches at a time


def get(session: Bind, id: int, /) -> Job | None:  # noqa: A002
    """The job with this id, whatever its state; None when there is none (never there, or deleted after its time)."""
    row = connection_of(session, "get").execute(statements.read_one(), {"id": checked_id(id)}).mappings().one_or_none()
    return None if row is None else job_of(row)


def args_text(session: Bind, id: int, /) -> str | None:  # noqa: A002
    """The args of a job as the database writes them: also those that Python cannot parse (`Job.args` is None)."""
    row = connection_of(session, "args_text").execute(statements.read_one(), {"id": checked_id(id)}).one_or_none()
    return None if row is None else str(row.args)


def jobs(session: Bind, /, *predicates: Predicate, limit: int | None = 100) -> list[Job]:
    """Jobs that fit all predicates, the newest first; `limit` None: all of them.

    Predicates are SQLAlchemy expressions over `jobq.tables.all_jobs`; over `jobs` (open) or `finished_jobs` (ended)
    alone they read that table alone, which is quicker where there are many of the others.
    """
    found = connection_of(session, "jobs").execute(statements.read(predicates_in(predicates), checked_limit(limit)))
    return [job_of(row) for row in found.mappings()]


def each_brief(
    session: Bind, /, *predicates: Predicate, limit: int | None = None, oldest_first: bool = False
) -> Iterator[Job]:
    """As `jobs`, read bit by bit while it is iterated and without args, meta and errors: for listings of any length."""
    statement = statements.read_brief(predicates_in(predicates), checked_limit(limit), oldest_first=oldest_first)
    statement = statement.execution_options(yield_per=BATCH)
    for row in connection_of(session, "each_brief").execute(statement).mappings():
        yield job_of(row)


def give_up_after(session: Bind, patience: timedelta, /) -> None:
    """Have the database refuse what takes longer, until the caller's transaction ends."""
    limit = f"{patience.total_seconds() * 1000:.0f}"
    connection_of(session, "give_up_after").execute(answer_within(), {"limit": limit})


def retry(session: Bind, /, *which: Which) -> Repaired:
    """Make ended jobs (dead, done, cancelled) pending again, due now, with their failures counted from zero.

    The history of errors stays. Give ids, or predicates over `jobq.tables.all_jobs`, `jobs` or `finished_jobs`, which
    may ask your own tables too:

        company = jobq.tables.all_jobs.c.args["company_id"].as_integer()
        jobq.retry(session, company.in_(select(Company.id).where(Company.is_paying)))

    Several ids, or predicates: what can be retried is, `refused` says why the others were not. A single id that cannot
    be: an error. For very many jobs `jobq retry` goes in chunks.

    Raises: NotEndedError, for a job that waits or runs; UniqueKeyError, when its key is held by an open job;
    UnknownJobError. Each leaves everything as it is, and the transaction usable.
    """
    connection = connection_of(session, "retry")
    if ids := ids_in(which):
        return _single(ids, retry_ids(connection, ids))
    predicates = predicates_in(which)
    changed = _changed(connection, statements.retry_where(predicates), {"channel": channel_to_tell(connection)})
    kept = connection.execute(statements.left(predicates)).all()
    return Repaired(changed, _refused_retries(connection, {row.id: row for row in kept}))


def retry_ids(connection: sa.Connection, ids: Sequence[int]) -> Repaired:
    """Retry those that can be, also when it is one that cannot."""
    changed = _changed(connection, statements.retry_ids(), {"ids": ids, "channel": channel_to_tell(connection)})
    standing = _standing(connection, sorted(set(ids) - set(changed)))
    return Repaired(changed, _refused_retries(connection, standing))


def cancel(session: Bind, /, *which: Which, running: bool = False) -> Repaired:
    """End waiting jobs as cancelled: they never start. Give ids, or predicates over `jobq.tables.all_jobs` or `jobs`.

    With `running` also those that run: nothing of theirs is recorded any more, and their workers stop them as soon as
    they are notified of the commit, without that within a sixth of their lease. Several ids, or predicates: what can be
    cancelled is. A single id that cannot be: an error.

    Raises: NotPendingError, for a job that runs, or has ended (it says how); UnknownJobError.
    """
    connection = connection_of(session, "cancel")
    if ids := ids_in(which):
        return _single(ids, cancel_ids(connection, ids, running=running))
    statement = statements.cancel_where(predicates_in(which))
    return Repaired(_changed(connection, statement, _cancelling(connection, running=running)))


def cancel_ids(connection: sa.Connection, ids: Sequence[int], *, running: bool = False) -> Repaired:
    """Cancel those that can be, also when it is one that cannot."""
    binds = _cancelling(connection, running=running)
    changed = _changed(connection, statements.cancel_ids(), {**binds, "ids": ids})
    standing = _standing(connection, sorted(set(ids) - set(changed)))
    return Repaired(changed, tuple(refuse_cancel(each, row) for each, row in standing.items()))


def stats(session: Bind, /) -> Stats:
    """Counts, ages, rates and durations of all queues: seven reads, whose cost does not grow with the tables."""
    return stats_of(counts(connection_of(session, "stats")))


def workers(session: Bind, /) -> list[WorkerRow]:
    """The workers that have a row, the oldest first, and how many jobs each runs."""
    rows = connection_of(session, "workers").execute(statements.read_workers()).mappings()
    return [worker_of(row) for row in rows]


def queue_names(session: Bind, /) -> list[str]:
    """Every queue that a job, a worker's handler or a setting names."""
    return sorted(connection_of(session, "queue_names").scalars(counting.queue_names()))


def get_async(session: AsyncBind, id: int, /) -> Coroutine[Any, Any, Job | None]:  # noqa: A002
    """`get` for an AsyncSession or AsyncConnection."""
    return over(session, get, id, called="get")


def jobs_async(
    session: AsyncBind, /, *predicates: Predicate, limit: int | None = 100
) -> Coroutine[Any, Any, list[Job]]:
    """`jobs` for an AsyncSession or AsyncConnection."""
    return over(session, lambda bind: jobs(bind, *predicates, limit=limit), called="jobs")


def retry_async(session: AsyncBind, /, *which: Which) -> Coroutine[Any, Any, Repaired]:
    """`retry` for an AsyncSession or AsyncConnection."""
    return over(session, retry, *which, called="retry")


def cancel_async(session: AsyncBind, /, *which: Which, running: bool = False) -> Coroutine[Any, Any, Repaired]:
    """`cancel` for an AsyncSession or AsyncConnection."""
    return over(session, lambda bind: cancel(bind, *which, running=running), called="cancel")


def stats_async(session: AsyncBind, /) -> Coroutine[Any, Any, Stats]:
    """`stats` for an AsyncSession or AsyncConnection."""
    return over(session, stats, called="stats")


def workers_async(session: AsyncBind, /) -> Coroutine[Any, Any, list[WorkerRow]]:
    """`workers` for an AsyncSession or AsyncConnection."""
    return over(session, workers, called="workers")


def _cancelling(connection: sa.Connection, *, running: bool) -> dict[str, Any]:
    least_seconds = KEEP_ENDED.total_seconds()
    return {"running": running, "least_seconds": least_seconds, "channel": channel_to_tell(connection)}


def _changed(connection: sa.Connection, statement: sa.Executable, binds: dict[str, Any]) -> tuple[int, ...]:
    return tuple(sorted(row.id for row in connection.execute(statement, binds)))


def _standing(connection: sa.Connection, ids: Sequence[int]) -> dict[int, Any]:
    """Where each of the jobs stands, None for those that are in neither table."""
    found = connection.execute(statements.standing(), {"ids": ids}).all() if ids else []
    return {**dict.fromkeys(ids), **{row.id: row for row in found}}


def _refused_retries(connection: sa.Connection, standing: dict[int, Any]) -> tuple[Refusal, ...]:
    keys = keys_of(row for row in standing.values() if row is not None)
    held = connection.execute(statements.holders(), {"keys": keys}).all() if keys else []
    holders = {row.unique_key: row.id for row in held}
    return tuple(refuse_retry(each, row, holders) for each, row in standing.items())


def _single(ids: Sequence[int], repaired: Repaired) -> Repaired:
    if len(ids) == 1 and repaired.refused:
        raise repaired.refused[0].error
    return repaired
