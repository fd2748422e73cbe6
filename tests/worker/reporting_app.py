"""Handlers that report, where each executor runs them. Children import it by its name."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio.lowlevel

import jobq

app = jobq.App()
SOON = {"retry": lambda failures, error: timedelta(0), "max_attempts": 2}
PAGES = 3


def copies_pages() -> jobq.Ok:
    """One page an attempt for sure: it fails right behind its checkpoint."""
    context = jobq.current()
    page = (context.last_checkpoint or {"page": 0})["page"] + 1
    context.progress(page / PAGES, f"page {page} of {PAGES}")
    context.checkpoint({"page": page})
    if page == 1:
        raise ConnectionError("the source is away")
    return jobq.Ok("copied", result={"page": page})


@app.handler("copies.loop", **SOON)
async def in_loop() -> jobq.Ok:
    return copies_pages()


@app.handler("copies.thread", **SOON)
def in_thread() -> jobq.Ok:
    return copies_pages()


@app.handler("copies.process", executor="process", **SOON)
def in_process() -> jobq.Ok:
    return copies_pages()


@app.handler("copies.process.async", executor="process", **SOON)
async def in_process_async() -> jobq.Ok:
    return copies_pages()


@app.handler("reports.process", executor="process")
def reports(path: str) -> None:
    """Far more than anybody wants to hear, then it waits to be told to stop, and keeps where it was."""
    context = jobq.current()
    for n in range(20_000):
        context.progress(n / 40_000, f"step {n}")
    Path(path).touch()
    while not context.cancelled:
        time.sleep(0.005)
    try:
        context.checkpoint({"told": True})
    except jobq.LeaseLostError:
        Path(f"{path}.lost").touch()


@app.handler("large.loop")
async def large_in_loop() -> jobq.Ok:
    return jobq.Ok("x", result="x" * 70_000)


@app.handler("large.process", executor="process")
def large_in_process() -> jobq.Ok:
    return jobq.Ok("x", result="x" * 70_000)


@app.handler("gives")
async def gives(value: Any) -> jobq.Ok:
    await anyio.lowlevel.checkpoint()
    return jobq.Ok(result=value)


@app.handler("gives.process", executor="process")
def gives_in_process(value: Any) -> jobq.Skip:
    return jobq.Skip("had it", result=value)
