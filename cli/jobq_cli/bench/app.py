"""The application that is measured: handlers that do nothing, or only wait. Its workers are `jobq run`."""

from __future__ import annotations

from datetime import timedelta

import anyio

import jobq
from jobq_cli.bench.probe import Probe

TIMEOUT = timedelta(minutes=5)  # that none of them reaches: what watches over it is to be measured, too
PROBE = Probe()
app = jobq.App()


@app.handler("noop", timeout=TIMEOUT)
async def noop(number: int = -1) -> None:
    PROBE.hit(number)


@app.handler("plain", timeout=TIMEOUT)
def plain(number: int = -1) -> None:
    PROBE.hit(number)


@app.handler("slow", timeout=TIMEOUT)
async def slow(seconds: float) -> None:
    await anyio.sleep(seconds)
