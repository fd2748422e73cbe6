"""Why a job has not run, or not finished."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from jobq.answers.causes import Why
from jobq.answers.decide import decide
from jobq.answers.facts import facts_of
from jobq.bind import AsyncBind, Bind, connection_of, over
from jobq.errors import UnknownJobError
from jobq.statements import why as statements
from jobq.which import checked_id


def why(session: Bind, id: int, /) -> Why:  # noqa: A002
    """The one cause that keeps a job from running, or from being finished; `str()` of it is a sentence.

        print(jobq.why(session, 42))  # job 42 waits: queue email is paused until ..., in 59m: out of credit

    One statement, so all of it is true at one moment. Of two causes it names the one that needs a person, or lasts
    longest; `also` has the others.

    Raises: UnknownJobError; OptionError, OptionTypeError, for what is no id; BindError.
    """
    binds = {"id": checked_id(id)}
    row = connection_of(session, "why").execute(statements.facts(), binds).mappings().one()
    facts = facts_of(row, id)
    if facts is None:
        raise UnknownJobError(id)
    return decide(facts)


def why_async(session: AsyncBind, id: int, /) -> Coroutine[Any, Any, Why]:  # noqa: A002
    """`why` for an AsyncSession or AsyncConnection."""
    return over(session, why, id, called="why")
