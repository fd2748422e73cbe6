"""`jobq.current().transaction()`: the work and the job's completion in one transaction, fenced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

import anyio
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from jobq.context import Transaction
from jobq.database import Database
from jobq.errors import ContextError, LeaseLostError
from jobq.faults import can_wait_out, is_connection_failure
from jobq.model import State
from jobq.retention import kept_for
from jobq.store import ending as store
from jobq.store import recorded
from jobq.store.ending import Ending
from jobq.worker.handler_engines import HandlerEngines
from jobq.worker.held import TAKEN, Held


class Sessions(Protocol):
    """Where the sessions of handlers come from; their commit is the handler's."""

    def session(self) -> Session: ...

    def async_session(self) -> AsyncSession: ...

    def expect_end(self, connection: sa.Connection) -> None:
        """The transaction of the connection is about to be committed: it need not wait for ever for the answer."""


@dataclass(frozen=True, slots=True)
class Transactions:
    """Opens the transactions of handlers, and settles those whose COMMIT got no answer."""

    engines: HandlerEngines
    database: Database

    def open(self, held: Held) -> Transaction:
        """A transaction for this attempt; it begins when it is entered. Raises: ContextError, when that has ended."""
        if held.task is None:
            raise ContextError(f"job {held.job.id} ({held.job.kind}): this attempt has ended")
        return JobTransaction(held, self.engines, self.settle, held.task.get_loop())

    async def settle(self, held: Held) -> bool:
        """Whether a COMMIT without an answer did happen. Asks until the database answers or the lease is lost."""
        while held.stop not in TAKEN:
            try:
                return await self.database.transaction(recorded.settle, held.fence)
            except Exception as error:
                if not can_wait_out(error):
                    raise
                await anyio.sleep(0.2)
        raise LeaseLostError(f"job {held.job.id}: the lease was lost before it could be told whether its work is kept")


class JobTransaction(Transaction):
    """See Context.transaction. `with` where no event loop runs in the thread, else `async with`."""

    def __init__(
        self,
        held: Held,
        sessions: Sessions,
        settle: Callable[[Held], Coroutine[Any, Any, bool]],
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self._held = held
        self._sessions = sessions
        self._settle = settle
        self._loop = loop
        self._session: Session | None = None
        self._async_session: AsyncSession | None = None

    def __enter__(self) -> Session:
        if self._is_async_here():
            raise ContextError("an event loop runs here: use `async with jobq.current().transaction()`")
        self._begin()
        self._session = self._sessions.session()
        return self._session

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        assert self._session is not None
        with self._session as session:
            if error is not None:
                _roll_back(session)
                return
            with _completing(self._held):
                self._complete(session)
                self._commit(session)

    def _commit(self, session: Session) -> None:
        try:
            session.commit()
        except Exception as problem:
            if self._loop is None or not is_connection_failure(problem):
                raise
            settled = asyncio.run_coroutine_threadsafe(self._settle(self._held), self._loop)
            if not settled.result():
                raise

    async def __aenter__(self) -> AsyncSession:
        if not self._is_async_here():
            raise ContextError("no event loop runs here: use `with jobq.current().transaction()`")
        self._begin()
        self._async_session = self._sessions.async_session()
        return self._async_session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        assert self._async_session is not None
        async with self._async_session as session:
            if error is not None:
                await session.run_sync(_roll_back)
                return
            with _completing(self._held):
                await session.run_sync(self._complete)
                await self._commit_async(session)

    async def _commit_async(self, session: AsyncSession) -> None:
        try:
            await session.commit()
        except Exception as problem:
            if not is_connection_failure(problem) or not await self._settle(self._held):
                raise

    def _complete(self, session: Session) -> None:
        """The job's completion as the last write before COMMIT. Raises: LeaseLostError; the session is rolled back."""
        session.flush()
        held, connection = self._held, session.connection()
        if not store.finish(connection, [Ending(held.fence, State.DONE, keep=kept_for(State.DONE, held.keep))]):
            session.rollback()
            raise LeaseLostError(
                f"job {held.job.id} ({held.job.kind}) was taken from this worker during attempt {held.job.attempt}:"
                " its work is rolled back"
            )
        self._sessions.expect_end(connection)

    def _is_async_here(self) -> bool:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        return True

    def _begin(self) -> None:
        if self._held.has_transaction:
            raise ContextError("current().transaction() was used before in this attempt: it completes the job, once")
        self._held.has_transaction = True


@contextmanager
def _completing(held: Held) -> Iterator[None]:
    """Meanwhile the heartbeat may find the row gone although nobody has taken it: we are moving it ourselves."""
    held.completing = True
    try:
        yield
        held.completed = True
    finally:
        held.completing = held.completed


def _roll_back(session: Session) -> None:
    """Where the connection is lost, so is the transaction: nobody needs to hear that instead of the handler's error."""
    try:
        session.rollback()
    except Exception as problem:
        if not is_connection_failure(problem):
            raise
