"""What histories are made of: an application of two kinds, what is enqueued of them, and the place where it happens."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from hypothesis import strategies as st
from reference import QUEUES, Answer, Want

import jobq
from jobq.verdict import Ended

HOURS = st.sampled_from([1, 2, 5, 30, 200])
HOWS = st.sampled_from(["done", "done", "fail", "fail", "permanent", "snooze", "pause"])
NUMBERS = st.integers(0, 1_000)  # which of those that there are: taken modulo their number
KEYS = ["a", "b"]


@dataclass
class World:
    """The database that machines of one test play in, one after the other."""

    engine: sa.Engine
    app: jobq.App
    look: sa.Connection
    rules: int = 0
    seen: Counter[str] = field(default_factory=Counter)


def application() -> jobq.App:
    """Two kinds. What they do is the state that `work_once` gives."""
    app = jobq.App()

    def later(failures: int, error: BaseException) -> timedelta:
        return timedelta(hours=failures)

    def act() -> Any:
        ended: Ended = jobq.current().state
        if ended.error is not None:
            raise ended.error
        return ended.value

    @app.handler("steady", retry=later)
    def steady(number: int) -> Any:
        return act()

    @app.handler("brittle", retry=later, on_interrupt="fail", keep=timedelta(hours=2))
    def brittle(number: int) -> Any:
        return act()

    return app


@st.composite
def wants(draw: st.DrawFn) -> Want:
    key = draw(st.sampled_from([None, None, *KEYS]))
    change = draw(st.sampled_from(["ignore", "raise", "replace", "reschedule"])) if key else "ignore"
    delay = draw(st.sampled_from([0, 0, 0, 1, 3]))
    max_wait = draw(st.sampled_from([None, 3, 6])) if change == "reschedule" else None
    kind, queue = draw(st.sampled_from(["steady", "steady", "brittle"])), draw(st.sampled_from(list(QUEUES)))
    return Want(
        0, kind, queue, draw(st.integers(0, 3)), delay, draw(st.sampled_from([1, 1, 2, 3])), key, change, max_wait
    )


def options_of(handler: Any, want: Want) -> Any:
    more = {} if want.key is None else {"unique_key": want.key, "on_conflict": want.change}
    if want.max_wait is not None:
        more["max_wait"] = timedelta(hours=want.max_wait)
    delay = timedelta(hours=want.delay)
    return handler.options(
        queue=want.queue, priority=want.priority, delay=delay, max_attempts=want.max_attempts, **more
    )


def enqueue(app: jobq.App, connection: sa.Connection, want: Want) -> Answer | None:
    try:
        return answer_of(jobq.enqueue(connection, options_of(app.handlers[want.kind], want), want.number))
    except jobq.UniqueKeyError:
        return None


def answer_of(given: jobq.Enqueued) -> Answer:
    return given.id, given.created, given.changed


def refusal_of(act: Any, connection: sa.Connection, id_: int, **options: Any) -> str | None:
    try:
        act(connection, id_, **options)
    except jobq.JobqError as error:
        return type(error).__name__
    return None
