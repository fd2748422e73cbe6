"""Whether the same work was done lately: to be asked before a paid call, or before it is enqueued again."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from jobq import checks
from jobq.bind import AsyncBind, Bind, connection_of, needs_bind, over
from jobq.errors import OptionError, OptionTypeError
from jobq.handlers import Args, Handler
from jobq.model import Job, State
from jobq.outcomes import WORDS, Word
from jobq.reading import job_of
from jobq.retention import kept_for
from jobq.statements import recent as statements


def recent(session: Bind, args: Args[...], /, *, within: timedelta, outcome: Word | None = "ok") -> Job | None:
    """The newest job of this kind with exactly these args that ended so within the time, None when there is none.

        if jobq.recent(session, refresh.args(company_id=7), within=timedelta(days=7)):
            return jobq.Skip("fresh")

    `outcome`: ok, fail, skip, err (dead), or None for any of them; cancelled jobs do not count. The args are compared
    as they were enqueued: one that was left out is not equal to its default. One look at an index.

    Raises: OptionError, when `within` is longer than such jobs are kept (see `keep=`); OptionTypeError; BindError.
    """
    asked = _asked(args, within, outcome)
    needs_bind(session, "recent")
    return _read(session, asked)


def recent_async(
    session: AsyncBind, args: Args[...], /, *, within: timedelta, outcome: Word | None = "ok"
) -> Coroutine[Any, Any, Job | None]:
    """`recent` for an AsyncSession, async_scoped_session or AsyncConnection."""
    return over(session, _read, _asked(args, within, outcome), called="recent")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that is checked but for a keep that only the database knows."""

    args: Args[...]
    within: timedelta
    outcome: Word | None


def _asked(args: Any, within: Any, outcome: Any) -> _Asked:
    if not isinstance(args, Args):
        raise OptionTypeError(f"recent: expected handler.args(...), got {type(args).__name__} {checks.show(args)}")
    if outcome is not None:
        checks.one_of("outcome", outcome, known=WORDS)
    asked = _Asked(args, checks.span("within", within), outcome)
    if isinstance(args.source, Handler) or args.source.effective().keep is not None:
        _check_kept(asked, _keep_of_call(args))
    return asked


def _keep_of_call(args: Args[...]) -> timedelta | None:
    chosen = args.source.effective().keep
    return args.source.settings.keep if chosen is None and isinstance(args.source, Handler) else chosen


def _check_kept(asked: _Asked, keep: timedelta | None) -> None:
    state = State.DEAD if asked.outcome == "err" else State.DONE
    if asked.within > (kept := kept_for(state, keep)):
        raise OptionError(
            f"within: {asked.within} is longer than {asked.args.source.kind} jobs are kept when {state} ({kept}):"
            " give the handler, or the enqueue's options, a longer keep="
        )


def _read(session: Bind, asked: _Asked) -> Job | None:
    connection = connection_of(session, "recent")
    source = asked.args.source
    if not isinstance(source, Handler) and source.effective().keep is None:
        _check_kept(asked, connection.execute(statements.keep_of_kind(), {"kind": source.kind}).scalar_one_or_none())
    binds = {
        "kind": source.kind,
        "args": asked.args.text,
        "within": asked.within.total_seconds(),
        "word": asked.outcome,
    }
    row = connection.execute(statements.recent(), binds).mappings().one_or_none()
    return None if row is None else job_of(row)
