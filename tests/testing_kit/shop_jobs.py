"""An application with handlers of every kind."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

import jobq

app = jobq.App()
WRITE = sa.text("INSERT INTO effects VALUES (:n)")
COUNT = sa.text("SELECT count(*) FROM effects")
HOUR = timedelta(hours=1)
seen: list[Any] = []  # what handlers noted, emptied by `noted`


def noted() -> list[Any]:
    taken, seen[:] = list(seen), []
    return taken


@app.handler("note")
def note(text: str) -> str:
    seen.append(text)
    return text


@app.handler("note.async")
async def note_async(text: str) -> str:
    seen.append(text)
    return text


@app.handler("write")
def write(n: int) -> jobq.Outcome:
    with jobq.current().transaction() as session:
        session.execute(WRITE, {"n": n})
        jobq.enqueue(session, note, f"wrote {n}")
    return jobq.Ok(f"wrote {n}")


@app.handler("write.async")
async def write_async(n: int) -> jobq.Outcome:
    async with jobq.current().transaction() as session:
        await session.execute(WRITE, {"n": n})
        await jobq.enqueue_async(session, note, f"wrote {n}")
    return jobq.Ok(f"wrote {n}")


@app.handler("write.and.fail", max_attempts=3)
def write_and_fail(n: int) -> None:
    with jobq.current().transaction() as session:
        session.execute(WRITE, {"n": n})
        raise OSError("disk full")


@app.handler("fail", max_attempts=2, retry=lambda failures, error: HOUR)
def fail() -> None:
    seen.append(jobq.current().job.attempt)
    raise OSError("disk full")


@app.handler("fail.async", max_attempts=2, retry=lambda failures, error: HOUR)
async def fail_async() -> None:
    seen.append(jobq.current().job.attempt)
    raise OSError("disk full")


@app.handler("permanent")
def permanent() -> None:
    raise jobq.Permanent("no recipient")


@app.handler("snooze")
def snooze() -> None:
    seen.append("snoozed")
    raise jobq.Snooze(HOUR)


@app.handler("pause", queue="paused")
def pause() -> None:
    raise jobq.PauseQueue(HOUR, "no credit")


@app.handler("endless")
def endless(session: str = "") -> None:
    with jobq.current().transaction() as own:
        jobq.enqueue(own, endless)


@app.handler("skip.test")
def skip_test() -> None:
    pytest.skip("asked for by a handler")


@app.handler("in.order", queue="fifo")
def in_order(text: str) -> None:
    seen.append(text)
    if text == "bad":
        raise OSError(text)


app.queue("fifo", fifo=True)
