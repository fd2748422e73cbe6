"""Handlers that raise what nobody should: each is one failed job, and the worker and its other jobs live on."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from bench import Bench, Gate, eventually

import jobq
from jobq import State

pytestmark = pytest.mark.anyio


class Rude(BaseException):
    pass


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Deadly(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)

    __repr__ = __str__


def _noted() -> Exception:
    error = ValueError("noted")
    for n in range(1000):
        error.add_note(f"note {n}")
    return error


def _in_a_circle() -> Exception:
    error = ValueError("circle")
    error.__context__ = KeyError("other")
    error.__context__.__context__ = error
    return error


UNUSUAL = {
    "system_exit": (SystemExit(3), "SystemExit"),
    "keyboard_interrupt": (KeyboardInterrupt(), "KeyboardInterrupt"),
    "base_exception": (Rude("rude"), "test_hostile_handlers.Rude"),
    "generator_exit": (GeneratorExit(), "GeneratorExit"),
    "stop_iteration": (StopIteration("one"), "StopIteration"),
    "stop_async_iteration": (StopAsyncIteration(), "StopAsyncIteration"),
}
HOSTILE = {
    "str_raises": (Mute(), "test_hostile_handlers.Mute"),
    "str_exits": (Deadly(), "test_hostile_handlers.Deadly"),
    "group": (ExceptionGroup("three", [ValueError("1"), KeyError("2"), OSError("3")]), "ExceptionGroup"),
    "a_thousand_notes": (_noted(), "ValueError"),
    "circle_of_contexts": (_in_a_circle(), "ValueError"),
}


def raising(app: jobq.App, kind: str, error: BaseException, *, where: str) -> jobq.Handler[Any, Any]:
    async def in_the_loop() -> None:
        raise error

    def in_a_thread() -> None:
        raise error

    return app.handler(kind, max_attempts=1)(in_the_loop if where == "loop" else in_a_thread)


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_f33_any_base_exception_is_one_failure_and_the_neighbour_lives(
    bench: Bench, app: jobq.App, where: str
) -> None:
    gate = Gate()
    app.handler("healthy")(gate.pass_)
    for name, (error, _) in UNUSUAL.items():
        raising(app, name, error, where=where)

    async with bench.working(app, concurrency=10):
        healthy = bench.add("healthy")
        await gate.until_waiting()
        ids = {bench.add(name): class_ for name, (_, class_) in UNUSUAL.items()}
        ended = [await bench.until(id_) for id_ in ids]
        gate.open()
        beside = await bench.until(healthy)

    assert {job.id: job.errors[0].error for job in ended} == ids
    assert {(job.state, job.attempt, job.failures) for job in ended} == {(State.DEAD, 1, 1)}
    assert (beside.state, beside.attempt) == (State.DONE, 1)


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_f35_an_exception_that_cannot_be_described_is_recorded_by_its_class(
    bench: Bench, app: jobq.App, where: str
) -> None:
    for name, (error, _) in HOSTILE.items():
        raising(app, name, error, where=where)
    ids = {bench.add(name): class_ for name, (_, class_) in HOSTILE.items()}

    async with bench.working(app):
        ended = [await bench.until(id_) for id_ in ids]

    assert {job.id: job.errors[0].error for job in ended} == ids
    assert {job.state for job in ended} == {State.DEAD}


async def test_a_cancellation_that_nobody_asked_for_is_a_failure(bench: Bench, app: jobq.App) -> None:
    @app.handler("k", max_attempts=1)
    async def handler() -> None:
        raise asyncio.CancelledError

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler))

    assert (job.state, job.errors[0].error) == (State.DEAD, "asyncio.exceptions.CancelledError")


async def test_a5_text_that_the_database_cannot_hold_spoils_nobodys_result(bench: Bench, app: jobq.App) -> None:
    @app.handler("k", max_attempts=1)
    async def handler(n: int) -> str:
        if n == 7:
            raise ValueError("bad \x00 byte \udcff")
        return "\ud800 and \x00" if n == 8 else "fine"

    with bench.connect() as connection:
        enqueued = jobq.enqueue_many(connection, handler, [{"n": n} for n in range(100)])
    async with bench.working(app, concurrency=100):
        states = await bench.until_all_ended()

    failed, odd, fine = (bench.job(enqueued[n].id) for n in (7, 8, 9))
    assert sorted(states.values()) == [State.DEAD, *[State.DONE] * 99]
    assert (failed.outcome, failed.errors[0].message) == (
        "err: ValueError: bad � byte �",
        "bad � byte �",
    )
    assert (odd.outcome, fine.outcome) == ("ok: � and �", "ok: fine")


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_f73_what_a_failed_job_held_is_freed_without_the_collector(
    bench: Bench, app: jobq.App, where: str
) -> None:
    class Heavy:
        pass

    held: list[weakref.ref[Heavy]] = []

    def fail() -> None:
        heavy = Heavy()
        held.append(weakref.ref(heavy))
        try:
            raise KeyError("first")
        except KeyError as error:
            kept = error  # noqa: F841  # a cycle: frame -> error -> traceback -> frame
            raise ValueError("second") from error

    async def fail_in_the_loop() -> None:
        fail()

    handler: Any = app.handler("k", max_attempts=1)(fail if where == "thread" else fail_in_the_loop)

    gc.disable()
    try:
        async with bench.working(app):
            job = await bench.until(bench.enqueue(handler))
            await eventually(lambda: held[0]() is None, "the local being freed")
    finally:
        gc.enable()
    assert job.errors[0].error == "ValueError"
