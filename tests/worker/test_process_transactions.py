"""`jobq.current().transaction()` in a child process: the same fence, and the worker knows."""

from __future__ import annotations

from typing import Any

import process_app
import psycopg
import pytest
import sqlalchemy as sa
from bench import Bench, eventually
from offspring import children
from process_app import app

from jobq import State

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("handler", [process_app.pays, process_app.pays_async], ids=["plain", "async"])


@pytest.fixture
def bench(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench.execute("CREATE TABLE effects (pid int)")
    monkeypatch.setenv("LEDGER_URL", bench.url.replace("+psycopg", ""))
    return bench


def payers(bench: Bench) -> list[int]:
    return [row.pid for row in bench.execute("SELECT pid FROM effects")]


@both
async def test_the_work_and_the_completion_commit_together(bench: Bench, handler: Any) -> None:
    async with bench.working(app, processes=1) as worker:
        id_ = bench.enqueue(handler)
        job = await bench.until(id_)
        await eventually(lambda: worker.stats().ok == 1, "the count")
        assert payers(bench) == list(children())

    assert (job.state, bench.job(id_).outcome, bench.job(id_).errors) == (State.DONE, "ok: paid", ())


@both
async def test_an_exception_inside_rolls_back_and_one_after_is_only_reported(bench: Bench, handler: Any) -> None:
    async with bench.working(app, processes=1) as worker:
        inside = await bench.until_retried(bench.enqueue(handler, "raise inside"))
        assert payers(bench) == []
        after = bench.enqueue(handler, "raise after")
        await bench.until(after)
        await eventually(lambda: worker.stats().ok == 1, "the count")

    assert inside.errors[0].error == "ValueError"
    assert (bench.job(after).state, bench.job(after).failures, len(payers(bench))) == (State.DONE, 0, 1)


@both
async def test_a_job_taken_meanwhile_takes_the_work_back(bench: Bench, handler: Any) -> None:
    async with bench.working(app, processes=1) as worker:
        id_ = bench.enqueue(handler, "steal inside")
        await eventually(lambda: worker.stats().refused + worker.stats().lost == 1, "a refused write")
        assert payers(bench) == []
        assert (bench.job(id_).state, bench.job(id_).attempt, bench.job(id_).failures) == (State.RUNNING, 99, 0)


@both
async def test_a_child_that_dies_inside_has_done_nothing_and_one_that_dies_after_has_done_all(
    bench: Bench, handler: Any
) -> None:
    async with bench.working(app, processes=1) as worker:
        inside = await bench.until_retried(bench.enqueue(handler, "die inside"))
        assert (inside.errors[0].error, payers(bench)) == ("jobq.errors.ChildDiedError", [])
        after = bench.enqueue(handler, "die after")
        await bench.until(after)
        await eventually(lambda: worker.stats().ok == 1, "the count")

    assert (bench.job(after).state, bench.job(after).failures, len(payers(bench))) == (State.DONE, 0, 1)


@both
async def test_a_child_connects_as_the_engine_of_the_worker_does(bench: Bench, handler: Any) -> None:
    url = sa.make_url(bench.url)
    engine = sa.create_engine(url.set(password="wrong"), connect_args={"password": url.password})
    async with bench.working(app, engine, processes=1):
        job = await bench.until(bench.enqueue(handler))
    engine.dispose()

    assert (job.state, len(payers(bench))) == (State.DONE, 1)


async def test_an_engine_that_makes_its_own_connections_cannot_cross(bench: Bench) -> None:
    url = bench.url.replace("+psycopg", "")
    engine = sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    async with bench.working(app, engine, processes=1):
        job = await bench.until_retried(bench.enqueue(process_app.pays))
    engine.dispose()

    assert job.errors[0].error == "jobq.errors.ContextError"
    assert "the engine's creator makes connections itself" in job.errors[0].message
