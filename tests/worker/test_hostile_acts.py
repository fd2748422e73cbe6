"""What a handler should not do, done in each executor: a stated end each time, and a worker that works on."""

from __future__ import annotations

import asyncio
import gc
import locale
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hostile_app
import pytest
from bench import Bench, eventually
from hostile_app import app
from offspring import children

import jobq
from jobq import State

pytestmark = pytest.mark.anyio

# Raised within the handler, as its failure: of the same class in every executor.
FAILURES = {
    "system_exit": "SystemExit: 3",
    "keyboard_interrupt": "KeyboardInterrupt: ",
    "generator_exit": "GeneratorExit: ",
    "stop_iteration": "StopIteration: one",
    "base_exception": "hostile_app.Rude: rude",
    "cancelled_error": "asyncio.exceptions.CancelledError: ",
    "slow_str": "hostile_app.Slow: said at last",
    "mute_str": "hostile_app.Mute: <no text: __str__ raised RuntimeError>",
    "recursion": "RecursionError: maximum recursion depth exceeded",
    "deep_traceback": "ValueError: at the bottom",
    "chain_of_causes": "KeyError: 999",
    "memory_error": "MemoryError: ",
    "long_message": "ValueError: mmm",
    "wrong_result": "jobq.outcomes.Permanent: a handler returns None, a str or an Outcome, this one int",
}
FINE = {
    "leave_a_thread": "ok: left",
    "long_result": "ok: rrr",
    "print_much": "ok: printed",
    "set_a_variable": "ok: nobody",
    "set_a_variable_again": "ok: nobody",
    "stop_collecting": "ok: no collector",
    "change_surroundings": "ok: /",
}
IN_A_LOOP = {
    "asyncio_run": "err: RuntimeError: asyncio.run() cannot be called from a running event loop",
    "cancel_itself": "err: asyncio.exceptions.CancelledError: ",
    "cancel_itself_and_return": "err: asyncio.exceptions.CancelledError: ",
    "close_the_loop": "err: RuntimeError: Cannot close a running event loop",
    "leave_a_task": "ok: left",
    "awaitable_result": None,
}
IN_NO_LOOP = {
    "asyncio_run": "ok: inner",
    "close_the_loop": "err: RuntimeError: no running event loop",
    "awaitable_result": "err: jobq.outcomes.Permanent: the handler returned an awaitable, not its value: await it",
}
ACTS: dict[str, dict[str, str | None]] = {
    "loop": {
        **IN_A_LOOP,
        "cancel_itself_and_return": "ok: as if nothing was",
        "stop_the_loop": "err: RuntimeError: a handler may not stop the event loop",
    },
    "thread": {**IN_NO_LOOP, "take_a_signal": "err: ValueError: signal only works in main thread"},
    "process": {**IN_NO_LOOP, "take_a_signal": None},
    "loop.of.a.process": {**IN_A_LOOP, "take_a_signal": None},
}
ABORTED = "err: jobq.errors.ChildDiedError: the job's process was ended by signal 6 (SIGABRT)"


@pytest.fixture(autouse=True)
def as_before(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the handlers change of the process is the test's own, too."""
    monkeypatch.setenv("HOSTILE_URL", bench.url.replace("+psycopg", ""))
    monkeypatch.setenv("LC_ALL", os.environ.get("LC_ALL", "C.UTF-8"))
    folder, numbers = Path.cwd(), locale.setlocale(locale.LC_NUMERIC)
    usr2 = signal.getsignal(signal.SIGUSR2)
    yield
    os.chdir(folder)
    locale.setlocale(locale.LC_NUMERIC, numbers)
    signal.signal(signal.SIGUSR2, usr2)
    gc.enable()
    hostile_app.kept.clear()


@pytest.mark.parametrize("where", ACTS)
async def test_f33_each_act_has_its_end_and_the_worker_works_on(bench: Bench, where: str) -> None:
    wanted = {**{name: f"err: {said}" for name, said in FAILURES.items()}, **FINE, **ACTS[where]}
    before = children()

    ended: dict[str, jobq.Job] = {}
    async with bench.working(app, concurrency=2, processes=1) as worker:
        for what in wanted:
            ended[what] = await bench.until(bench.add(f"act.in.{where}", args={"what": what}), within=30)
        fine = await bench.until(bench.add(f"act.in.{where}", args={"what": "leave_a_thread"}))
        if where == "loop":
            await eventually(lambda: "stray task" in hostile_app.kept, "the task that was left")

    found = {what: _cut(job.outcome, wanted[what]) for what, job in ended.items()}
    assert found == wanted
    assert {job.attempt for job in ended.values()} == {1}
    assert max(len(job.outcome or "") for job in ended.values()) < 10_000
    assert max(len(str(job.errors)) for job in ended.values()) < 40_000
    assert fine.outcome == "ok: left"
    assert worker.stats().left_behind == 0
    assert children() == before


async def test_f34_an_async_handler_that_aborts_its_process_is_one_failed_attempt(bench: Bench) -> None:
    async with bench.working(app, processes=1):
        job = await bench.until(bench.add("act.in.loop.of.a.process", args={"what": "abort"}))
        fine = await bench.until(bench.add("act.in.process", args={"what": "leave_a_thread"}))

    assert (job.outcome, job.failures) == (ABORTED, 1)
    assert fine.outcome == "ok: left"


@pytest.mark.parametrize("where", ["loop", "process"])
async def test_a_handler_that_deletes_its_own_row_ends_nobodys_job(bench: Bench, where: str) -> None:
    async with bench.working(app, processes=1) as worker:
        id_ = bench.add(f"act.in.{where}", args={"what": "delete_own_row"})
        await eventually(lambda: worker.stats().refused, "a write that the fence refused")
        fine = await bench.until(bench.add(f"act.in.{where}", args={"what": "leave_a_thread"}))

    assert id_ not in bench.states()
    assert fine.outcome == "ok: left"


async def test_tasks_that_a_handler_has_left_are_cancelled_with_the_event_loop(bench: Bench) -> None:
    tasks: list[asyncio.Task[None]] = []
    own = jobq.App()

    @own.handler("k")
    async def handler() -> None:
        tasks.append(asyncio.create_task(asyncio.sleep(3600)))

    async with bench.working(own) as worker:
        job = await bench.until(bench.enqueue(handler))

    assert job.state is State.DONE
    assert worker.stats().left_behind == 0
    assert not tasks[0].done()  # the worker does not wait for it, and asyncio.run cancels it
    tasks[0].cancel()


def _cut(outcome: str | None, wanted: str | None) -> str | None:
    """As much of the outcome as is compared."""
    return outcome if wanted is None or outcome is None else outcome[: len(wanted)]
