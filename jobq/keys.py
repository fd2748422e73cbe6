"""The key of an ORM object, for the args of a job: what a handler loads the object by."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import InstanceState, Session
from sqlalchemy.util.concurrency import in_greenlet

from jobq.errors import ArgsError, OptionTypeError


def pk(obj: object, /) -> Any:
    """The primary key of an ORM object; a new one, or one that was changed, is flushed with its session first.

    As `enqueue(session, send_receipt, order_id=jobq.pk(order))`. Under asyncio a new object has to be flushed before,
    `await session.flush()`: a plain function cannot wait for the database there.

    Raises: ArgsError, for an object without a session or with a composite key; what the flush raises.
    """
    state = sa.inspect(obj, raiseerr=False)
    if not isinstance(state, InstanceState):
        raise OptionTypeError(f"pk: expected an object of the ORM, got {type(obj).__name__}")
    what = type(obj).__name__
    names = [column.name for column in state.mapper.primary_key]
    if len(names) > 1:
        raise ArgsError(
            f"pk({what})", f"a composite key ({', '.join(names)}): pass each part as an argument of its own"
        )
    _flush(_session_of(state, what), state, what)
    (key,) = state.identity or state.mapper.primary_key_from_instance(obj)
    if key is None:
        raise ArgsError(f"pk({what})", "no key yet, the flush has not reached it; ask in after_flush or before_commit")
    return key


def _session_of(state: InstanceState[Any], what: str) -> Session:
    if state.session is not None and not state.deleted:
        return state.session
    if state.transient:
        raise ArgsError(f"pk({what})", "a transient object, no session has it: session.add(object) first")
    if state.detached and not state.was_deleted:
        raise ArgsError(
            f"pk({what})",
            "a detached object, its session was closed or has expunged it: take the key before, or session.add(object)",
        )
    raise ArgsError(f"pk({what})", "a deleted object, a handler would not find it: take the key before the delete")


def _flush(session: Session, state: InstanceState[Any], what: str) -> None:
    if not (state.pending or state.modified) or session._flushing:  # in an event of the flush
        return
    if state.async_session is not None and not in_greenlet():
        raise ArgsError(f"pk({what})", "not flushed yet, and its session is async: await session.flush() first")
    session.flush()
