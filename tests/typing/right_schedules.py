# pyright: strict
"""Right schedules: no type checker complains. Read by test_typing.py, never executed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import assert_type
from zoneinfo import ZoneInfo

from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

import jobq

app = jobq.App()
billing = jobq.Registry()
HOUR = timedelta(hours=1)


@app.every(24 * HOUR, name="nightly-report")
@app.cron("30 */6 * * *", tz="Europe/Paris", catch_up="once")
@app.when(lambda t: t.minute % 15 == 0, name="quarters", catch_up="skip")
@app.handler("report")
async def report(day: int = 1) -> str:
    return f"day {day}"


@billing.cron("@monthly", tz=ZoneInfo("Asia/Kathmandu"), catch_up="all")
@billing.handler("invoices")
def invoice(*, month: int = 1) -> None: ...


def is_quarter(minute: datetime) -> bool:
    return minute.minute % 15 == 0


async def calls(session: Session, asynchronous: AsyncSession) -> None:
    assert_type(await report(2), str)
    jobq.enqueue(session, report, 2)
    jobq.enqueue(session, invoice, month=3)
    assert_type(await jobq.run_schedule_async(asynchronous, "report"), jobq.Enqueued)
    assert_type(jobq.run_schedule(session, "report"), jobq.Enqueued)
    assert_type(jobq.schedules(session), list[jobq.ScheduleRow])
    assert_type(await jobq.schedules_async(asynchronous), list[jobq.ScheduleRow])


app.schedule(jobq.cron("@daily", name="daily"), report.options(queue="slow"), day=3)
app.schedule(jobq.when(is_quarter, tz="Europe/Paris"), invoice)
app.schedule(jobq.every(HOUR), jobq.kind("elsewhere", queue="q"), anything=1)
assert_type(jobq.every(HOUR).next_after(datetime.now()), datetime | None)
assert_type(jobq.cron("@daily").next_runs(datetime.now()), tuple[datetime, ...])
