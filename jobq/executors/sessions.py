"""Sessions that a function left open.

A thread keeps what is local to it, a `scoped_session` for one: without a reset the next function in that thread would
go on in an aborted transaction, or commit what is not its own.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import Any
from weakref import ref

from sqlalchemy import event
from sqlalchemy.orm import Session

logger = logging.getLogger("jobq.worker")

Begun = list[ref[Session]]
_begun: ContextVar[Begun | None] = ContextVar("jobq_begun_sessions", default=None)


def watch_sessions() -> None:
    """Have every Session of this process say where it begins a transaction, whoever made it."""
    if not event.contains(Session, "after_transaction_create", _note):
        event.listen(Session, "after_transaction_create", _note)


def note_sessions() -> Begun:
    """The sessions that begin a transaction from now on, in this context: they add themselves."""
    begun: Begun = []
    _begun.set(begun)
    return begun


def leave_none_open(begun: Begun, whose: str) -> None:
    """Roll back and reset those that are still in a transaction."""
    _begun.set(None)
    for session in {session for reference in begun if (session := reference()) is not None}:
        if session.in_transaction():
            logger.info("%s: its handler left a session open; what it had not committed is rolled back", whose)
            _reset(session, whose)


def _note(session: Session, _transaction: Any) -> None:
    if (begun := _begun.get()) is not None:
        begun.append(ref(session))


def _reset(session: Session, whose: str) -> None:
    try:
        session.reset()
    except Exception as error:  # a listener of the application's; it must not decide how the job ended
        logger.warning("%s: a session that was left open could not be reset: %s", whose, error)
