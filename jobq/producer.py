"""Enqueue: jobs join the caller's transaction.

All that can be checked is checked before any SQL is sent, so that a refused call leaves the transaction as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from jobq import checks
from jobq.bind import AsyncBind, Bind, connection_of, needs_bind, over
from jobq.callsite import callsite
from jobq.context import current_id
from jobq.errors import ArgsError, OptionTypeError, UniqueKeyError
from jobq.handlers import Args, Kind, P, needs_kind
from jobq.model import Enqueued
from jobq.options import Options
from jobq.outgoing import watched, watchers
from jobq.store import inserting
from jobq.store.newjobs import Answer, Manner, NewJob


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
    return _insert(session, _prepare(handler, args, kwargs))


def enqueue_async(
    session: AsyncBind, handler: Kind[P], /, *args: P.args, **kwargs: P.kwargs
) -> Coroutine[Any, Any, Enqueued]:
    """`enqueue` for an AsyncSession, async_scoped_session or AsyncConnection: checked now, sent at the await."""
    return over(session, _insert, _prepare(handler, args, kwargs), called="enqueue")


def enqueue_many(session: Bind, handler: Kind[P], rows: Iterable[Args[P] | Mapping[str, Any]], /) -> list[Enqueued]:
    """Insert many jobs of one handler, as `enqueue` does; the answers in the order of the rows.

    A row is `handler.args(...)` or a mapping of keyword arguments. `handler.options(...).args(...)` gives a row options
    of its own. One statement for each 5 000 rows, one notification for each lane and statement. Of rows with equal
    unique keys the first has the job; of several that replace or reschedule it the last counts. With any `on_conflict`
    but "ignore" it is all or none: a savepoint holds them.

    Raises: as `enqueue`; the path of an ArgsError begins with the row, `rows[3].args.to`.
    """
    needs_bind(session, "enqueue_many")
    return _insert_many(session, _prepare_many(handler, rows))


def enqueue_many_async(
    session: AsyncBind, handler: Kind[P], rows: Iterable[Args[P] | Mapping[str, Any]], /
) -> Coroutine[Any, Any, list[Enqueued]]:
    """`enqueue_many` for an AsyncSession, async_scoped_session or AsyncConnection: checked now, sent at the await."""
    return over(session, _insert_many, _prepare_many(handler, rows), called="enqueue_many")


@dataclass(frozen=True, slots=True)
class _Batch:
    """The jobs of one call, and whether an error may come when some are inserted."""

    common: dict[str, Any]
    jobs: list[NewJob]
    may_fail: bool


def _prepare(handler: Kind[...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Batch:
    kind = needs_kind(handler)
    options = kind.effective()
    return _batch(kind, [(kind.encode(args, kwargs), options)])


def _prepare_many(handler: Kind[...], rows: Iterable[Args[...] | Mapping[str, Any]]) -> _Batch:
    kind = needs_kind(handler)
    if isinstance(rows, str | Mapping | Args):
        raise OptionTypeError(f"rows: expected a list of handler.args(...) or mappings, got one {type(rows).__name__}")
    return _batch(kind, [_row(kind, row, n) for n, row in enumerate(rows)])


def _row(kind: Kind[...], row: Args[...] | Mapping[str, Any], n: int) -> tuple[str, Options]:
    if isinstance(row, Args):
        if not kind.is_same(row.source):
            raise ArgsError(f"rows[{n}]", f"the args of {row.source.kind}, expected those of {kind.kind}")
        return row.text, kind.effective(row)
    if not isinstance(row, Mapping):
        raise ArgsError(f"rows[{n}]", f"expected {kind.kind}.args(...) or a mapping, got {checks.show(row)}")
    try:
        return kind.encode((), row), kind.effective()
    except ArgsError as error:
        raise ArgsError(f"rows[{n}].{error.path}", error.problem) from error


def _batch(kind: Kind[...], rows: list[tuple[str, Options]]) -> _Batch:
    now = datetime.now(UTC)  # only to tell whether a worker need be woken; when a job is due, the database says
    manners: dict[int, Manner] = {}  # by the identity of the options, which mostly all rows share
    for _, options in rows:
        if id(options) not in manners:
            manners[id(options)] = _manner(options, now)
    keyed = [manner for manner in manners.values() if manner.is_keyed]
    may_fail = any(manner.change or manner.must_be_new for manner in keyed)
    may_fail = may_fail or (bool(keyed) and current_id() is not None)
    jobs = [NewJob(text, manners[id(options)]) for text, options in rows]
    return _Batch({"kind": kind.kind, "callsite": callsite()}, jobs, may_fail)


def _manner(options: Options, now: datetime) -> Manner:
    options.demand_sense()
    change = options.on_conflict if options.on_conflict in ("replace", "reschedule") else None
    return Manner(options.binds(), options.is_later(now), change, must_be_new=options.on_conflict == "raise")


def _insert(bind: Bind, batch: _Batch) -> Enqueued:
    if watchers:
        return _watched(_insert_one, bind, batch)[0]
    return _insert_one(bind, batch)[0]


def _insert_one(bind: Bind, batch: _Batch) -> list[Enqueued]:
    answer = inserting.insert(connection_of(bind, "enqueue"), batch.jobs[0], batch.common)
    return [_accept(answer, batch.jobs[0])]


def _insert_many(bind: Bind, batch: _Batch) -> list[Enqueued]:
    if not batch.jobs:
        return []
    return _watched(_insert_all, bind, batch) if watchers else _insert_all(bind, batch)


def _watched(insert: Callable[[Bind, _Batch], list[Enqueued]], bind: Bind, batch: _Batch) -> list[Enqueued]:
    manners = {job.manner for job in batch.jobs}
    with watched(batch.common["kind"], {each.binds["queue"] for each in manners}, len(batch.jobs)) as outgoing:
        carrying = {each: each.but(meta=outgoing.with_carried(each.binds["meta"])) for each in manners}
        jobs = [NewJob(job.args, carrying[job.manner]) for job in batch.jobs]
        enqueued = insert(bind, replace(batch, jobs=jobs))
        outgoing.created += [each.id for each in enqueued if each.created]
    return enqueued


def _insert_all(bind: Bind, batch: _Batch) -> list[Enqueued]:
    connection = connection_of(bind, "enqueue_many")
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
