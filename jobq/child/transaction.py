"""`jobq.current().transaction()` in a child: the same fenced statement, and the worker is told of it first."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

import anyio.to_thread
from sqlalchemy.orm import Session

from jobq.child.parent import Parent
from jobq.errors import LeaseLostError
from jobq.faults import is_connection_failure
from jobq.worker.held import Held
from jobq.worker.transactions import JobTransaction, Sessions


class ChildTransaction(JobTransaction):
    """Asks before the completion and tells after it: meanwhile the worker's heartbeat may find the row gone."""

    def __init__(self, held: Held, sessions: Sessions, parent: Parent) -> None:
        super().__init__(held, sessions, self._settle_there, None)
        self._parent = parent

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if error is not None:
            return super().__exit__(kind, error, trace)
        if (refusal := self._refusal()) is not None:
            super().__exit__(LeaseLostError, refusal, None)
            raise refusal
        try:
            super().__exit__(None, None, None)
        finally:
            self._tell()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if error is not None:
            return await super().__aexit__(kind, error, trace)
        if (refusal := await anyio.to_thread.run_sync(self._refusal)) is not None:
            await super().__aexit__(LeaseLostError, refusal, None)
            raise refusal
        try:
            await super().__aexit__(None, None, None)
        finally:
            self._tell()

    def _commit(self, session: Session) -> None:
        try:
            session.commit()
        except Exception as problem:
            if not is_connection_failure(problem) or not self._parent.ask("settled"):
                raise

    def _refusal(self) -> LeaseLostError | None:
        """None: the worker lets it complete the job."""
        try:
            self._parent.ask("completes")
        except LeaseLostError as error:
            return error
        return None

    def _tell(self) -> None:
        self._parent.tell({"is": "completed", "committed": self._held.completed})

    async def _settle_there(self, _: Held) -> bool:
        settled: Callable[[], bool] = lambda: bool(self._parent.ask("settled"))  # noqa: E731
        return await anyio.to_thread.run_sync(settled)
