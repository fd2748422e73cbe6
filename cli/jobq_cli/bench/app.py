"""The application that is measured: handlers that do nothing, or only wait. Its workers are `jobq run`."""

from __future__ import annotations

import anyio

import jobq
from jobq_cli.bench.probe import Probe

PROBE = Probe()
app = jobq.App()


@app.handler("noop")
async def noop(number: int = -1) -> None:
    PROBE.hit(number)


@app.handler("plain")
def plain(number: int = -1) -> None:
    PROBE.hit(number)


@app.handler("slow")
async def slow(seconds: float) -> None:
    await anyio.sleep(seconds)
