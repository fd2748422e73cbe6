# pyright: strict
"""Right: an application's own tests. Read by test_typing.py, never executed."""

from __future__ import annotations

from datetime import timedelta

from right import send_email
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

import jobq
from jobq.testing import (
    Worked,
    assert_enqueued,
    assert_enqueued_async,
    context,
    drain,
    drain_async,
    enqueued,
    enqueued_async,
    work_once,
    work_once_async,
)

app = jobq.App()


def test_sync(jobq_session: Session) -> None:
    worked: Worked | None = work_once(app, jobq_session, queues=["email"], state=object())
    done: list[Worked] = drain(app, jobq_session, scheduled=True, raise_errors=False, most=10)
    assert worked is not None
    assert worked.job.state is jobq.State.DONE
    assert worked.word == "ok"
    assert [each.error for each in done] == [None]
    jobs: list[jobq.Job] = enqueued(jobq_session, send_email)
    assert jobs == enqueued(jobq_session)
    assert_enqueued(jobq_session, send_email, queue="email", run_at=timedelta(hours=1), count=2, to="a@b.c")
    assert_enqueued(jobq_session, send_email.args("a@b.c"))
    with context(state=1, session=jobq_session, attempt=2, kind="email.send") as current:
        current.cancel()


async def test_async(jobq_async_session: AsyncSession) -> None:
    worked: Worked | None = await work_once_async(app, jobq_async_session)
    done: list[Worked] = await drain_async(app, jobq_async_session)
    jobs: list[jobq.Job] = await enqueued_async(jobq_async_session, send_email)
    found: list[jobq.Job] = await assert_enqueued_async(jobq_async_session, send_email, to="a@b.c")
    assert worked in done
    assert jobs == found
    with context(session=jobq_async_session):
        await send_email("a@b.c")
