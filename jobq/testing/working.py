"""Running jobs in a test: `work_once` and `drain`, and their async twins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobq.bind import AsyncBind, Bind, needs_bind, over
from jobq.errors import ArgsError, WorkerError
from jobq.registry import App
from jobq.testing.running import UNSET, OwnLoop, own_loop, run_async, run_plain, state_of
from jobq.testing.solo import Solo, Worked
from jobq.verdict import Ended
from jobq.worker.held import Held


def work_once(
    app: App,
    session: Bind,
    /,
    *,
    queues: Sequence[str] | None = None,
    scheduled: bool = False,
    raise_errors: bool = True,
    state: Any = UNSET,
) -> Worked | None:
    """Run the next due job, in the caller's transaction; None when there is none.

    It is claimed, run and ended by the worker's own statements. The job with the smallest priority number goes first,
    of these the one that is due first. What the handler writes in `jobq.current().transaction()` is a savepoint of the
    caller's transaction; the session's own changes are flushed before, and what it has read is expired after, as by a
    commit. `scheduled`: also a job whose time has not come, or that waits for its retry: its run_at is now, then.

    What the handler raises is recorded as the worker would do it, and then raised, unless `raise_errors` is False
    (Snooze and PauseQueue are answers, they are not raised). `state` is `jobq.current().state`; the application's
    lifespan is opened for the call unless it is given.

    In a test's own thread, async handlers in an event loop of the call's own. Timeouts and throttles do not hold here.

    Raises: what the handler raises; ArgsError, for args that do not fit it; ContextError, for an async handler where an
    event loop runs.
    """
    done = _work(app, session, queues, scheduled, raise_errors, state, most=1)
    return done[0] if done else None


def drain(
    app: App,
    session: Bind,
    /,
    *,
    queues: Sequence[str] | None = None,
    scheduled: bool = False,
    raise_errors: bool = True,
    state: Any = UNSET,
    most: int = 1_000,
) -> list[Worked]:
    """Run due jobs, one after the other, until there is none: also those that are enqueued meanwhile. See `work_once`.

    With `scheduled` also all that is due later, and every retry, until it is dead. `most`: jobs that may run.

    Raises: as `work_once`, at the first job that fails; WorkerError, when so many have run and there is one more.
    """
    done = _work(app, session, queues, scheduled, raise_errors, state, most=most + 1)
    return _bounded(done, most)


async def work_once_async(
    app: App,
    session: AsyncBind,
    /,
    *,
    queues: Sequence[str] | None = None,
    scheduled: bool = False,
    raise_errors: bool = True,
    state: Any = UNSET,
) -> Worked | None:
    """`work_once` for an AsyncSession or AsyncConnection; async handlers run in the test's own task."""
    done = await _work_async(app, session, queues, scheduled, raise_errors, state, most=1)
    return done[0] if done else None


async def drain_async(
    app: App,
    session: AsyncBind,
    /,
    *,
    queues: Sequence[str] | None = None,
    scheduled: bool = False,
    raise_errors: bool = True,
    state: Any = UNSET,
    most: int = 1_000,
) -> list[Worked]:
    """`drain` for an AsyncSession or AsyncConnection; async handlers run in the test's own task."""
    done = await _work_async(app, session, queues, scheduled, raise_errors, state, most=most + 1)
    return _bounded(done, most)


def _work(
    app: App, bind: Bind, queues: Sequence[str] | None, scheduled: bool, raises: bool, state: Any, *, most: int
) -> list[Worked]:
    needs_bind(bind, "jobq.testing")
    solo, done = Solo(app, queues), list[Worked]()
    with own_loop(app, state) as (loop, opened):
        solo.join(bind)
        try:
            while len(done) < most and (held := solo.take(scheduled=scheduled)) is not None:
                ended = _run(solo, held, opened, loop)
                done.append(_raised(solo.settle(held, ended), raises))
        finally:
            solo.leave(bind)
    return done


def _run(solo: Solo, held: Held, state: Any, loop: OwnLoop) -> Ended:
    try:
        call = solo.call(held, state, in_greenlet=False)
    except ArgsError as error:
        return Ended(error=error)
    return loop.run(run_async(call)) if held.handler.is_async else run_plain(call)


async def _work_async(
    app: App, bind: AsyncBind, queues: Sequence[str] | None, scheduled: bool, raises: bool, state: Any, *, most: int
) -> list[Worked]:
    solo, done = Solo(app, queues), list[Worked]()
    async with state_of(app, state) as opened:
        await over(bind, solo.join, called="jobq.testing")
        try:
            while len(done) < most:
                held = await over(bind, lambda _: solo.take(scheduled=scheduled))
                if held is None:
                    break
                ended = await _run_async(solo, bind, held, opened)
                done.append(_raised(await over(bind, _settle, solo, held, ended), raises))
        finally:
            await over(bind, solo.leave)
    return done


async def _run_async(solo: Solo, bind: AsyncBind, held: Held, state: Any) -> Ended:
    """A plain handler runs where SQLAlchemy's sync side of an async session does: here, in a greenlet."""
    is_plain = not held.handler.is_async
    try:
        call = solo.call(held, state, in_greenlet=is_plain)
    except ArgsError as error:
        return Ended(error=error)
    return await over(bind, lambda _: run_plain(call)) if is_plain else await run_async(call)


def _settle(_: Bind, solo: Solo, held: Held, ended: Ended) -> Worked:
    return solo.settle(held, ended)


def _raised(worked: Worked, raises: bool) -> Worked:
    """The attempt, unless what it raised is to be raised: Ctrl-C and pytest's own signals are never kept."""
    error = worked.error
    is_answer = worked.word in ("snooze", "pause")
    if error is not None and ((raises and not is_answer) or not isinstance(error, Exception)):
        raise error
    return worked


def _bounded(done: list[Worked], most: int) -> list[Worked]:
    if len(done) > most:
        last = done[-1].job
        raise WorkerError(f"drain: {most} jobs have run and there are more: does {last.kind!r} enqueue itself? (most=)")
    return done
