"""The application of the soak: what a day brings, in seconds; and a handler that leaks whatever can be leaked."""

from __future__ import annotations

import os
import threading
import time
from datetime import timedelta

import anyio
import psycopg
import sqlalchemy as sa

import jobq
from jobq.statements import clean
from jobq.tables import finished_jobs
from jobq.worker import leader

KEEP = timedelta(seconds=float(os.environ.get("SOAK_KEEP", "30")))
LEAKY = "leaky"
LEAK_EVERY = float(os.environ.get("SOAK_LEAK_EVERY", "1"))  # seconds
app = jobq.App()
leaked: list[object] = []
leaks_at = time.monotonic()

if os.environ.get("SOAK_COMPRESSED"):  # an ended job waits to be summed, by the minute, before it may be deleted
    leader.MAINTAIN = timedelta(seconds=2)
    clean._is_over = lambda: (finished_jobs.c.expires_at <= sa.func.now(),)


@app.every(timedelta(seconds=1), name="each-second")
@app.handler("soak.tick", keep=KEEP)
async def tick() -> None: ...


@app.handler("soak.quick", keep=KEEP)
async def quick(text: str) -> str:
    return text[:20]


@app.handler("soak.thread", keep=KEEP)
def in_a_thread(text: str) -> None: ...


@app.handler("soak.report", keep=KEEP)
async def report(text: str) -> jobq.Ok:
    jobq.current().checkpoint({"at": len(text)})
    jobq.current().progress(0.5, "half")
    await anyio.sleep(0.05)
    return jobq.Ok(text[:20], result={"text": text[:50]})


@app.handler("soak.fail", keep=KEEP, retry=lambda failures, error: timedelta(seconds=1))
async def fail_at_first(text: str) -> None:
    """With a MiB in a local variable, which an exception that is kept would keep."""
    heavy = bytearray(1 << 20)
    if jobq.current().job.attempt == 1:
        raise ValueError(f"{text[:20]} {len(heavy)}")


@app.handler("soak.snooze", keep=KEEP)
async def snooze_at_first(text: str) -> None:
    if jobq.current().job.attempt == 1:
        raise jobq.Snooze(timedelta(seconds=1))


@app.handler("soak.write", keep=KEEP)
async def write(text: str) -> None:
    async with jobq.current().transaction() as session:
        await session.execute(sa.text("UPDATE written SET jobs = jobs + 1"))


@app.handler("soak.leak", queue=LEAKY, keep=KEEP)
async def leak(text: str) -> None:
    """Memory, a connection with its descriptor, a thread."""
    global leaks_at
    if time.monotonic() < leaks_at:
        return
    leaks_at += LEAK_EVERY
    leaked.append(os.urandom(2 << 20))
    leaked.append(psycopg.connect(os.environ["CHAOS_LEDGER_URL"], application_name="jobq leak"))
    threading.Thread(target=threading.Event().wait, daemon=True).start()


KINDS = [quick, in_a_thread, report, fail_at_first, snooze_at_first, write]
