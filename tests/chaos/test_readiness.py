"""Probes see what a worker goes through: a network that swallows everything, a server that is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import anyio
import pytest
from board import Board
from places import Server
from proxy import proxy_to

import jobq
from jobq.model import State

pytestmark = pytest.mark.anyio
PATIENCE_SECONDS = 30
app = jobq.App()
handler: Any = app.handler("k")(lambda: None)


def worker_on(url: str) -> jobq.Worker:
    return jobq.Worker(app, url, lease=timedelta(seconds=4), poll_interval=timedelta(milliseconds=100))


async def eventually(look: Callable[[], bool], what: str) -> float:
    """Wait for it; how many seconds it took."""
    began = time.monotonic()
    with anyio.move_on_after(PATIENCE_SECONDS):
        while not look():  # noqa: ASYNC110  # what it looks at is in another process
            await anyio.sleep(0.02)
        return time.monotonic() - began
    raise AssertionError(f"waited in vain for {what}")


async def test_a_network_that_swallows_everything_makes_a_worker_unready_until_it_heals(board: Board) -> None:
    with proxy_to(board.url) as proxy:
        worker = worker_on(proxy.url)
        async with anyio.create_task_group() as group:
            await group.start(worker.run)
            await eventually(lambda: worker.is_ready, "a worker that is ready")
            proxy.swallow()
            took = await eventually(lambda: not worker.is_ready, "a worker that is not ready")
            problems = worker.health().problems
            proxy.heal()
            await eventually(lambda: worker.is_ready, "a worker that is ready again")
            job = board.enqueue(handler)
            await eventually(lambda: board.job(job).state is State.DONE, "its next job")
            worker.stop()

    print(f"\nunready {took:.1f} s after the cut: {'; '.join(problems)}")
    assert problems


async def test_a_server_that_is_stopped_makes_a_worker_unready_until_it_is_back(
    server: Server, own_board: Board
) -> None:
    worker = worker_on(server.url)
    async with anyio.create_task_group() as group:
        await group.start(worker.run)
        await eventually(lambda: worker.is_ready, "a worker that is ready")
        await anyio.to_thread.run_sync(server.stop)
        took = await eventually(lambda: not worker.is_ready, "a worker that is not ready")
        await anyio.to_thread.run_sync(server.start)
        await eventually(lambda: worker.is_ready, "a worker that is ready again")
        job = own_board.enqueue(handler)
        await eventually(lambda: own_board.job(job).state is State.DONE, "its next job")
        worker.stop()

    print(f"\nunready {took:.1f} s after the server had stopped")
