"""The application of test_answers.py: a handler or a queue for each thing that a job can wait for."""

from __future__ import annotations

from datetime import timedelta

import anyio

import jobq

HOUR = timedelta(hours=1)
app = jobq.App()
app.queue("one", fifo=True)
app.queue("few", concurrency=1)
app.queue("paced", fifo=True, throttle=lambda outcome, error, elapsed: HOUR)


@app.handler("wait", queue="plain", max_attempts=50)
async def wait() -> None:
    """Longer than any test."""
    await anyio.sleep(600)


@app.handler("quick", queue="plain")
async def quick() -> str:
    return "all done"


@app.handler("fail", queue="plain", max_attempts=3, retry=lambda failures, error: HOUR)
async def fail() -> None:
    raise ValueError("no such card")


@app.handler("snooze", queue="plain")
async def snooze() -> None:
    raise jobq.Snooze(HOUR)


@app.handler("stop", queue="stopped")
async def stop() -> None:
    raise jobq.PauseQueue(HOUR, "HTTP 401")
