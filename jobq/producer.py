"""Enqueue: jobs join the caller's transaction.

All that can be checked is checked before any SQL is sent, so that a refused call leaves the transaction as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from jobq.bind import AsyncBind, Bind, connection_of, needs_bind, over
from jobq.context import current_id
from jobq.errors import UniqueKeyError
from jobq.handlers import Args, Kind, P
from jobq.model import Enqueued
from jobq.outgoing import watched, watchers
from jobq.preparing import AlikeBatch, Batch, prepare, prepare_many
from jobq.store import inserting
from jobq.store.newjobs import Answer, NewJob


def enqueue(session: Bind, handler: Kind[P], /, *args: P.args, **kwargs: P.kwargs) -> Enqueued:
    """Insert a job in the caller's transaction: it exists if, and only if, that commits.

    The arguments are those of the handler, checked before any SQL is sent and kept as jsonb, which drops the order of
    keys and refuses NUL characters (PostgreSQL manual, 8.14). How it is enqueued rides on the handler, see
    `Kind.options`. Commits nothing; what the database itself raises (a deadlock; SQLSTATE 40001 for a key that was
    taken since the snapshot of a REPEATABLE READ transaction) reaches the caller as it is. Of the session's events
    before_commit is the place for it: in after_commit SQLAlchemy refuses any SQL.

    Raises: ArgsError, when the arguments do not fit the handler or have no JSON form; BindError, for what is not a
    Session, scoped_session or Connection; AutocommitError; OptionError, for options that only make sense together;
    UniqueKeyError, with `on_conflict="raise"`, when the job that is running here holds the key itself, when a job of
    another kind is to be replaced or rescheduled, or when the key was taken and freed again ten times meanwhile.
    """
    needs_bind(session, "enqueue")
    return _insert(session, prepare(handler, args, kwargs))


def enqueue_async(
    session: AsyncBind, handler: Kind[P], /, *args: P.args, **kwargs: P.kwargs
) -> Coroutine[Any, Any, Enqueued]:
    """`enqueue` for an AsyncSession, async_scoped_session or AsyncConnection: checked now, sent at the await."""
    return over(session, _insert, prepare(handler, args, kwargs), called="enqueue")


def enqueue_many(session: Bind, handler: Kind[P], rows: Iterable[Args[P] | Mapping[str, Any]], /) -> list[Enqueued]:
    """Insert many jobs of one handler, as `enqueue` does; the answers in the order of the rows.

    A row is `handler.args(...)` or a mapping of keyword arguments. `handler.options(...).args(...)` gives a row options
    of its own. One statement for each 5 000 rows, one notification for each lane and statement. Of rows with equal
    unique keys the first has the job; of several that replace or reschedule it the last counts. With any `on_conflict`
    but "ignore" it is all or none: a savepoint holds them.

    Raises: as `enqueue`; the path of an ArgsError begins with the row, `rows[3].args.to`.
    """
    needs_bind(session, "enqueue_many")
    return _insert_many(session, prepare_many(handler, rows))


def enqueue_many_async(
    session: AsyncBind, handler: Kind[P], rows: Iterable[Args[P] | Mapping[str, Any]], /
) -> Coroutine[Any, Any, list[Enqueued]]:
    """`enqueue_many` for an AsyncSession, async_scoped_session or AsyncConnection: checked now, sent at the await."""
    return over(session, _insert_many, prepare_many(handler, rows), called="enqueue_many")


def _insert(bind: Bind, batch: Batch) -> Enqueued:
    if watchers:
        return _watched(_insert_one, bind, batch)[0]
    return _insert_one(bind, batch)[0]


def _insert_one(bind: Bind, batch: Batch) -> list[Enqueued]:
    answer = inserting.insert(connection_of(bind, "enqueue"), batch.jobs[0], batch.common)
    return [_accept(answer, batch.jobs[0])]


def _insert_many(bind: Bind, batch: Batch | AlikeBatch) -> list[Enqueued]:
    if not batch.number:
        return []
    return _watched(_insert_all, bind, batch) if watchers else _insert_all(bind, batch)


def _watched(insert: Callable[[Bind, Any], list[Enqueued]], bind: Bind, batch: Batch | AlikeBatch) -> list[Enqueued]:
    queues = {manner.binds["queue"] for manner in batch.manners}
    with watched(batch.common["kind"], queues, batch.number) as outgoing:
        carrying = batch.changed(lambda manner: manner.but(meta=outgoing.with_carried(manner.binds["meta"])))
        enqueued = insert(bind, carrying)
        outgoing.created += [each.id for each in enqueued if each.created]
    return enqueued


def _insert_all(bind: Bind, batch: Batch | AlikeBatch) -> list[Enqueued]:
    connection = connection_of(bind, "enqueue_many")
    if isinstance(batch, AlikeBatch):
        ids = inserting.insert_alike(connection, batch.blocks, batch.manner, batch.common)
        return [Enqueued(each, True) for each in ids]
    with connection.begin_nested() if batch.may_fail else nullcontext():
        answers = inserting.insert_many(connection, batch.jobs, batch.common)
        return [_accept(answer, job) for answer, job in zip(answers, batch.jobs, strict=True)]


def _accept(answer: Answer, job: NewJob) -> Enqueued:
    if answer.created:
        return Enqueued(answer.id, True)
    if job.manner.must_be_new:
        problem = f"unique key {answer.key!r} is held by job {answer.id}"
        raise UniqueKeyError(problem, key=answer.key or "", holder=answer.id)
    if answer.id == current_id():
        problem = f"unique key {answer.key!r} is held by job {answer.id}, which is the one that runs here"
        raise UniqueKeyError(f"{problem}: give the next one another key", key=answer.key or "", holder=answer.id)
    return Enqueued(answer.id, False, answer.changed)
