"""Handlers that have the whole process stand still once they are told to stop, and need a moment more afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from datetime import timedelta

import anyio
import apps

import jobq
from jobq.worker import heartbeat

OVERDUE = "CHAOS_OVERDUE"  # seconds, in place of the heartbeat's minute
BRIEF = timedelta(seconds=0.2)
MOMENTS = 5
MOMENT_SECONDS = 0.02  # one by one, or most of it would pass while the process stands still

app = jobq.App()
app.lifespan(apps.ledger)
if seconds := os.environ.get(OVERDUE):
    heartbeat.OVERDUE = timedelta(seconds=float(seconds))


@app.handler("in_thread", timeout=BRIEF, max_attempts=1)
def in_thread() -> None:
    _until_told()
    _stand_still()
    _take_a_moment()


@app.handler("in_thread_for_long", max_attempts=1)
def in_thread_for_long() -> None:
    in_thread.function()


@app.handler("attentive", timeout=timedelta(seconds=1), max_attempts=1)
def attentive() -> None:
    _until_told()
    _take_a_moment()


@app.handler("in_loop", timeout=BRIEF, max_attempts=1)
async def in_loop() -> None:
    await apps.began()
    try:
        await anyio.sleep(600)
    finally:
        _stand_still()
        for _ in range(MOMENTS):
            await asyncio.sleep(MOMENT_SECONDS)


@app.handler("in_loop_for_long", max_attempts=1)
async def in_loop_for_long() -> None:
    await in_loop.function()


def _until_told() -> None:
    apps.in_thread.function(seconds=0)  # writes down that it has begun
    while not jobq.current().cancelled:
        time.sleep(0.01)


def _stand_still() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _take_a_moment() -> None:
    for _ in range(MOMENTS):
        time.sleep(MOMENT_SECONDS)
