"""Sessions that a function left open.

A thread keeps what is local to it, a `scoped_session` for one: without a reset the next function in that thread would
go on in an aborted transaction, or commit what is not its own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

from sqlalchemy import event
from sqlalchemy.orm import Session

logger = logging.getLogger("jobq.worker")

_begun: ContextVar[WeakSet[Session] | None] = ContextVar("jobq_begun_sessions", default=None)


def watch_sessions() -> None:
    """Have every Session of this process say where it begins a transaction, whoever made it."""
    if not event.contains(Session, "after_transaction_create", _note):
        event.listen(Session, "after_transaction_create", _note)


@contextmanager
def none_left_open(whose: str) -> Iterator[None]:
    """Roll back and reset the sessions that begin within the block and are still in a transaction at its end."""
    begun: WeakSet[Session] = WeakSet()
    token = _begun.set(begun)
    try:
        yield
    finally:
        _begun.reset(token)
        for session in list(begun):
            if session.in_transaction():
                logger.info("%s: its handler left a session open; what it had not committed is rolled back", whose)
                _reset(session, whose)


def _note(session: Session, _transaction: Any) -> None:
    if (begun := _begun.get()) is not None:
        begun.add(session)


def _reset(session: Session, whose: str) -> None:
    try:
        session.reset()
    except Exception as error:  # a listener of the application's; it must not decide how the job ended
        logger.warning("%s: a session that was left open could not be reset: %s", whose, error)
