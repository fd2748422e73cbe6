"""What was enqueued, for a test to look at."""

from __future__ import annotations

import inspect
import json
from collections.abc import Coroutine, Mapping
from datetime import datetime, timedelta
from typing import Any

from jobq import admin, showing
from jobq.bind import AsyncBind, Bind, connection_of, needs_bind, over
from jobq.codec import encode_untyped
from jobq.codec.form import Misfit
from jobq.errors import ArgsError
from jobq.handlers import Args, Handler, Kind, needs_kind
from jobq.masking import masked
from jobq.model import Job
from jobq.tables import jobs

SHOWN = 20  # jobs that an error shows


def enqueued(session: Bind, handler: Kind[...] | None = None, /) -> list[Job]:
    """The jobs that wait, of one handler or of all, in the order in which they were enqueued."""
    needs_bind(session, "enqueued")
    return _waiting(session, handler)


def enqueued_async(session: AsyncBind, handler: Kind[...] | None = None, /) -> Coroutine[Any, Any, list[Job]]:
    """`enqueued` for an AsyncSession or AsyncConnection."""
    return over(session, _waiting, handler, called="enqueued")


def assert_enqueued(
    session: Bind,
    what: Kind[...] | Args[...],
    /,
    *,
    queue: str | None = None,
    run_at: datetime | timedelta | None = None,
    count: int = 1,
    **args: Any,
) -> list[Job]:
    """Fail unless so many jobs wait that were enqueued like this; they are returned.

        assert_enqueued(session, send_receipt, order_id=7)               # these args, whatever the others
        assert_enqueued(session, send_receipt.args(7, lang="fr"))        # exactly these args
        assert_enqueued(session, send_receipt, run_at=timedelta(hours=1), count=0)

    An argument that was left out counts as its default. `run_at` as a timedelta is the time since the enqueue: the
    `delay`. Raises: AssertionError, which shows what waits instead; ArgsError, for args that the handler cannot have.
    """
    __tracebackhide__ = True
    needs_bind(session, "assert_enqueued")
    return _demand(session, _Wanted(what, queue, run_at, count, args))


async def assert_enqueued_async(
    session: AsyncBind,
    what: Kind[...] | Args[...],
    /,
    *,
    queue: str | None = None,
    run_at: datetime | timedelta | None = None,
    count: int = 1,
    **args: Any,
) -> list[Job]:
    """`assert_enqueued` for an AsyncSession or AsyncConnection."""
    __tracebackhide__ = True
    return await over(session, _demand, _Wanted(what, queue, run_at, count, args), called="assert_enqueued")


class _Wanted:
    """What a job is to look like, with its args as they are in JSON."""

    def __init__(
        self,
        what: Kind[...] | Args[...],
        queue: str | None,
        run_at: datetime | timedelta | None,
        count: int,
        args: Mapping[str, Any],
    ) -> None:
        self.handler: Kind[...] = what.source if isinstance(what, Args) else needs_kind(what)
        self.count = count
        self._queue = queue
        self._run_at = run_at
        self._whole = json.loads(what.text) if isinstance(what, Args) else None
        self._some = {name: _as_json(self.handler, name, value) for name, value in args.items()}
        self._given = args

    def fits(self, job: Job) -> bool:
        """Whether a job is one of those that are wanted."""
        since = job.run_at if isinstance(self._run_at, datetime) else job.run_at - job.created_at
        args = {**_defaults(self.handler, self._some), **(job.args or {})}
        return (
            self._queue in (None, job.queue)
            and self._run_at in (None, since)
            and self._whole in (None, job.args)
            and all(name in args and args[name] == value for name, value in self._some.items())
        )

    def __str__(self) -> str:
        args = masked(dict(self._given) if self._whole is None else self._whole, self.handler.secrets)
        said = [f"{name}={value!r}" for name, value in args.items()]
        said += [f"queue {self._queue}"] if self._queue is not None else []
        said += [f"run_at {self._run_at}"] if self._run_at is not None else []
        return f"{self.handler.kind}{' with ' if said else ''}{', '.join(said)}"


def _demand(bind: Bind, wanted: _Wanted) -> list[Job]:
    __tracebackhide__ = True
    found = [job for job in _waiting(bind, wanted.handler) if wanted.fits(job)]
    if len(found) != wanted.count:
        others = _waiting(bind, None)
        lines = [_line(bind, wanted.handler, job) for job in others[:SHOWN]]
        shown = [*lines, *([f"  and {len(others) - SHOWN} more"] if len(others) > SHOWN else [])]
        there = "\n".join(["what waits:", *shown]) if others else "nothing waits"
        raise AssertionError(f"{_jobs(wanted.count)} of {wanted} expected, there are {len(found)}; {there}")
    return found


def _line(bind: Bind, handler: Kind[...], job: Job) -> str:
    """Tests are logged too. What a handler at hand calls secret need not have been published."""
    secrets = showing.secrets_of(bind, job) | (handler.secrets if job.kind == handler.kind else frozenset())
    return f"  {job.id}: {job.kind} {masked(job.args, secrets)} in queue {job.queue}, run_at {job.run_at}"


def _waiting(bind: Bind, handler: Kind[...] | None) -> list[Job]:
    connection = connection_of(bind, "enqueued")
    of_kind = [] if handler is None else [jobs.c.kind == needs_kind(handler).kind]
    return admin.jobs(connection, jobs.c.worker_id.is_(None), *of_kind, limit=None)[::-1]


def _as_json(handler: Kind[...], name: str, value: Any) -> Any:
    """A value as it is kept. Raises: ArgsError."""
    if not isinstance(handler, Handler):
        return json.loads(encode_untyped((), {name: value}))[name]
    form = handler.codec.forms.get(name)
    if form is None:
        known = ", ".join(handler.codec.parameters) or "none"
        raise ArgsError(f"args.{name}", f"unknown argument (known: {known}; of another kind: handler.args(...))")
    try:
        return json.loads(json.dumps(form.encode(value)))
    except Misfit as misfit:
        misfit.steps.append(f".{name}")
        raise misfit.error() from None


def _defaults(handler: Kind[...], names: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of these arguments, those that a job could carry, as they would be kept."""
    if not isinstance(handler, Handler):
        return {}
    parameters = inspect.signature(handler.function).parameters
    found = {}
    for name in names:
        if name not in handler.codec.required:
            try:
                found[name] = _as_json(handler, name, parameters[name].default)
            except ArgsError:  # such a default is never sent
                continue
    return found


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
