# pyright: strict
"""Right calls about queues: no type checker complains. Read by test_typing.py, never executed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import assert_type

from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

import jobq

HOUR = timedelta(hours=1)
app = jobq.App()


def throttle(outcome: str, error: BaseException | None, elapsed: timedelta) -> timedelta:
    return HOUR if outcome.startswith("err") or error else timedelta(seconds=1) - elapsed


def pause_on(error: BaseException) -> jobq.PauseQueue | timedelta | None:
    return jobq.PauseQueue(HOUR, "out of credit") if isinstance(error, PermissionError) else None


app.queue("default", weight=5)
app.queue("pictures", threads=4)
app.queue("images", concurrency=4, throttle=throttle, pause_on=pause_on)
app.queue("apollo", fifo=True, throttle=jobq.per_minute(150, backoff={"err: 429": 5 * HOUR}), timeout=HOUR)
app.queue("graph", fifo=True, throttle=lambda outcome, error, elapsed: HOUR, pause_on=lambda error: HOUR)
app.queue("mail", pause_on=jobq.http_status({401, 403}, HOUR))


@app.handler("ask", queue="apollo")
async def ask() -> None:
    raise jobq.PauseQueue(timedelta(minutes=5), reason="the quota is used up")


def by_hand(session: Session) -> None:
    assert_type(jobq.pause(session, "mail", HOUR, reason="the provider is down"), datetime | None)
    jobq.pause(session, "mail")
    assert_type(jobq.resume(session, "mail"), bool)
    jobq.set_queue(session, "mail", weight=3, concurrency=4)
    jobq.set_queue(session, "apollo", fifo=False)
    for row in jobq.queues(session):
        assert_type(row, jobq.QueueRow)
        assert_type(row.paused_until, datetime | None)


async def by_hand_async(session: AsyncSession) -> None:
    assert_type(await jobq.pause_async(session, "mail", HOUR), datetime | None)
    assert_type(await jobq.resume_async(session, "mail"), bool)
    await jobq.set_queue_async(session, "mail", fifo=True)
    assert_type(await jobq.queues_async(session), list[jobq.QueueRow])
