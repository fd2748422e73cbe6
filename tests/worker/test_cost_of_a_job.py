"""What a job costs the worker: calls, counted, since times differ from run to run."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from bench import Bench, eventually

import jobq

pytestmark = pytest.mark.anyio
OURS = str(Path(jobq.__file__).parent)
FEW, MANY = 400, 2_400
CALLS = {"async": 26, "thread": 40}  # of jobq's own functions for one job, from its row to its end
# For one job, of those that are called for a batch or a turn: between threads, and on a machine that has more to do,
# nobody knows how large they are.
MOST_SHARED = 15.0


class Calls:
    """Counts the calls of jobq's functions in this thread, and in those that begin meanwhile."""

    def __init__(self) -> None:
        self._called: list[str] = []

    @property
    def by_function(self) -> Counter[str]:
        return Counter(self._called)

    def __enter__(self) -> Calls:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            self._called.append(frame.f_code.co_qualname)


@pytest.mark.parametrize("where", ["async", "thread"])
async def test_a_quick_job_costs_no_more_calls_than_it_did(bench: Bench, app: jobq.App, where: str) -> None:
    async def awaited() -> None: ...

    noop: jobq.Kind[Any] = app.handler("noop")(awaited if where == "async" else lambda: None)

    few, many = [await calls_of(bench, app, noop, number) for number in (FEW, MANY)]

    for_one = {name: (many[name] - few[name]) / (MANY - FEW) for name in many}
    own = {name: calls for name, calls in for_one.items() if calls > 0.9}
    shared = {name: calls for name, calls in for_one.items() if name not in own}
    assert round(sum(own.values())) == CALLS[where], own  # fewer are welcome: lower the number
    assert sum(shared.values()) < MOST_SHARED, sorted(shared.items(), key=lambda item: -item[1])[:30]


async def calls_of(bench: Bench, app: jobq.App, handler: jobq.Kind[Any], number: int) -> Counter[str]:
    """Of a worker that runs so many jobs, from its start to its end."""
    bench.enqueue_many(handler, number)
    with Calls() as calls:
        async with bench.working(app, concurrency=20, listen=False) as worker:
            await eventually(lambda: worker.stats().ok == number, "the last job")
    return calls.by_function
