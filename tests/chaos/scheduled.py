"""The application of test_schedules.py: schedules of each second, one for each way of catching up."""

from __future__ import annotations

import random
from datetime import timedelta

import anyio

import jobq

SECOND = timedelta(seconds=1)
app = jobq.App()


@app.every(SECOND, name="once")
@app.every(SECOND, name="skip", catch_up="skip")
@app.handler("slow", max_attempts=50)
async def slow() -> None:
    """Now and then longer than a second, so that the next copy is skipped."""
    await anyio.sleep(random.choice([0.0, 0.3, 1.4]))


@app.every(SECOND, name="all", catch_up="all")
@app.handler("quick", max_attempts=50)
async def quick() -> None: ...
