"""Enqueue from a SELECT: a job for each of its rows, made in the database, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session, scoped_session

from jobq.bind import AsyncBind, Bind, connection_of, needs_bind, over
from jobq.callsite import callsite
from jobq.codec import MAX_BYTES
from jobq.errors import ArgsError, JobqError, OptionError, UniqueKeyError
from jobq.handlers import Kind, needs_kind
from jobq.labels import FromRow, Unfit, labelled
from jobq.options import Options
from jobq.outgoing import watched, watchers
from jobq.statements import enqueue_select as statements
from jobq.store.inserting import holder_of, insert_select


def enqueue_select(
    session: Bind, handler: Kind[...], select: sa.SelectBase, /, *, options_from: Iterable[FromRow] = ()
) -> int:
    """Insert a job for each row of a SELECT, by one INSERT .. SELECT in the caller's transaction; how many were new.

    Each column is labelled as a parameter of the handler and converted as its annotation says; `options_from` names
    columns that are options instead, `run_at` or `priority` (NULL: as the handler says). All rows or none: where one
    cannot be a job (NULL without Optional, NaN, a priority of 7, args over 1 MiB) the error names the argument. A row
    whose derived unique key is held, or came before, is passed over; with `on_conflict="raise"` it is an error. The
    session is flushed first, as before any query. A bare `jobq.kind` takes any labels, and values as jsonb has them.

    Raises: before any SQL ArgsError, OptionError, OptionTypeError, for labels, types and options; for values the same
    with the transaction as it was, and UniqueKeyError; BindError and AutocommitError as `enqueue`.
    """
    needs_bind(session, "enqueue_select")
    return _insert(session, _prepare(handler, select, options_from))


def enqueue_select_async(
    session: AsyncBind, handler: Kind[...], select: sa.SelectBase, /, *, options_from: Iterable[FromRow] = ()
) -> Coroutine[Any, Any, int]:
    """`enqueue_select` for an AsyncSession, async_scoped_session or AsyncConnection: checked now, sent at the await."""
    return over(session, _insert, _prepare(handler, select, options_from), called="enqueue_select")


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A call that is checked: what to send, and what each of the conditions means that rows may be unfit by."""

    statement: sa.Executable
    binds: dict[str, Any]
    unfit: tuple[Unfit, ...]
    is_later: bool
    must_be_new: bool


def _prepare(handler: Kind[...], select: sa.SelectBase, options_from: Iterable[FromRow]) -> _Prepared:
    kind = needs_kind(handler)
    options = kind.effective()
    if options.changes_holder:
        raise OptionError(f"on_conflict: enqueue_select cannot {options.on_conflict} jobs, enqueue_many can")
    options.demand_sense()
    rows, unfit = labelled(kind, select, options_from)
    must_be_new = options.is_keyed and options.on_conflict == "raise"
    statement = statements.enqueue_select(rows, most_bytes=MAX_BYTES, keyed=options.is_keyed, must_be_new=must_be_new)
    return _Prepared(statement, _binds(kind, options), unfit, options.is_later(datetime.now(UTC)), must_be_new)


def _binds(kind: Kind[...], options: Options) -> dict[str, Any]:
    binds = {**options.binds(kind.secrets), "kind": kind.kind, "callsite": callsite()}
    unused = {"unique_key", "max_wait"} if options.is_keyed else {"unique_key", "max_wait", "unique_names"}
    return {name: value for name, value in binds.items() if name not in unused}


def _insert(bind: Bind, prepared: _Prepared) -> int:
    if not watchers:
        return _insert_selected(bind, prepared)
    binds = prepared.binds
    with watched(binds["kind"], [binds["queue"]], None) as outgoing:
        outgoing.number = _insert_selected(
            bind, replace(prepared, binds={**binds, "meta": outgoing.with_carried(binds["meta"])})
        )
    return outgoing.number


def _insert_selected(bind: Bind, prepared: _Prepared) -> int:
    connection = connection_of(bind, "enqueue_select")
    _flush(bind)
    with connection.begin_nested() if prepared.must_be_new else nullcontext():
        selected = insert_select(connection, prepared.statement, prepared.binds, is_later=prepared.is_later)
        if selected.unfit:
            raise _refusal(prepared.unfit, selected.unfit)
        if selected.missed is not None:
            raise _held(selected.missed, holder_of(connection, selected.missed))
    return selected.inserted


def _flush(bind: Bind) -> None:
    """As a query of the session would; in an event of its flush that is under way."""
    session = bind() if isinstance(bind, scoped_session) else bind
    if isinstance(session, Session) and session.autoflush and not session._flushing:
        session.flush()


def _refusal(meanings: tuple[Unfit, ...], rows: dict[int, int]) -> JobqError:
    first = min(rows)
    if first < len(meanings):
        return meanings[first].error(rows[first])
    problem = f"more than {MAX_BYTES:,} bytes of JSON, in {rows[first]:,} of the rows; nothing was inserted"
    return ArgsError("args", f"{problem}: store the data, pass its key")


def _held(key: str, holder: int | None) -> UniqueKeyError:
    by = "was held meanwhile" if holder is None else f"is held by job {holder}, or came twice"
    return UniqueKeyError(f"unique key {key!r} {by}; nothing was inserted", key=key, holder=holder)
