"""Calling a handler as the function that it is, with a `jobq.current()` to ask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TypedDict, Unpack

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session, scoped_session

from jobq.bind import AsyncBind, Bind, connection_of, over
from jobq.context import Context, CurrentJob, Transaction, entered
from jobq.errors import ContextError
from jobq.testing.joined import JoinedSessions

SYNC = (sa.Connection, Session, scoped_session)


class JobFields(TypedDict, total=False):
    """The fields of `current().job`."""

    id: int
    kind: str
    queue: str
    priority: int
    attempt: int
    failures: int
    max_attempts: int
    run_at: datetime
    created_at: datetime


@contextmanager
def context(
    *, state: Any = None, session: Bind | AsyncBind | None = None, **job: Unpack[JobFields]
) -> Iterator[Context]:
    """Have `jobq.current()` answer within the block, for handlers that are called as functions.

        with jobq.testing.context(state=FakeMail(), failures=4) as context:
            await send_receipt(7)

    `state` is `current().state`; `session` makes `current().transaction()` work, as a savepoint of its transaction
    (there is no job to complete); other names are fields of `current().job`. `context.cancel()` tells the handler to
    stop.
    """
    now = datetime.now(UTC)
    usual = CurrentJob(1, "test", "default", 1, 1, 0, 5, now, now)
    fields = {name: getattr(usual, name) for name in CurrentJob._fields}
    view = CurrentJob(**{**fields, **job})
    opened = Context(view, state, lambda: _OnSession(session))
    with entered(opened):
        yield opened


class _OnSession(Transaction):
    """A savepoint of the test's transaction, committed where the handler's own would be."""

    def __init__(self, bind: Any) -> None:
        self._bind = bind

    def __enter__(self) -> Session:
        if not isinstance(self._bind, SYNC):
            raise _no_transaction(self._bind, "a Session or Connection")
        self._session = JoinedSessions(connection_of(self._bind)).session()
        return self._session

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        with self._session as session:
            session.commit() if error is None else session.rollback()

    async def __aenter__(self) -> AsyncSession:
        connection = await self._connection()
        self._async_session = JoinedSessions(connection).async_session()
        return self._async_session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        async with self._async_session as session:
            await (session.commit() if error is None else session.rollback())

    async def _connection(self) -> sa.Connection:
        """Of a sync session too: a test may have one, whatever its handlers are."""
        if isinstance(self._bind, SYNC):
            return connection_of(self._bind)
        if self._bind is None:
            raise _no_transaction(self._bind, "an AsyncSession or AsyncConnection")
        return await over(self._bind, connection_of, called="context")


def _no_transaction(bind: Any, wanted: str) -> ContextError:
    given = "there is none" if bind is None else f"it is {type(bind).__name__}"
    return ContextError(f"no transaction here: it needs context(session=...) with {wanted}, {given}")
