"""A COMMIT of `jobq.current().transaction()` whose answer was lost: the tables say whether it happened."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy.exc as sa_exc
from bench import Bench, assembly_of, break_statements, eventually
from own_transactions import both, kept, register

import jobq
from jobq import State

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(bench: Bench) -> Bench:
    bench.execute("CREATE TABLE effects (n int)")
    return bench


def lost() -> sa_exc.OperationalError:
    return sa_exc.OperationalError("COMMIT", {}, Exception("server closed the connection"), connection_invalidated=True)


def without_an_answer(where: str, *, happened: bool) -> Any:
    """Has a session's COMMIT happen or not, and its answer be lost."""

    def doubtful(session: Any) -> None:
        end = session.commit if happened else session.rollback

        async def in_the_loop() -> None:
            await end()
            raise lost()

        def in_a_thread() -> None:
            end()
            raise lost()

        session.commit = in_the_loop if where == "loop" else in_a_thread

    return doubtful


@both
async def test_a_commit_without_an_answer_that_happened_is_found_out(bench: Bench, app: jobq.App, where: str) -> None:
    handler = register(app, where, inside=without_an_answer(where, happened=True), after=lambda: "sent")

    async with bench.working(app) as worker:
        # The first answers to the question are lost too.
        answers = iter([ConnectionError("cut"), lost()])
        with pytest.MonkeyPatch.context() as patch:
            break_statements(
                assembly_of(worker).database, patch, lambda name: next(answers, None) if name == "settle" else None
            )
            id_ = bench.enqueue(handler)
            await eventually(lambda: worker.stats().ok == 1, "the count")

    job = bench.job(id_)
    assert (job.state, job.outcome, job.attempt, kept(bench)) == (State.DONE, "ok: sent", 1, 1)


@both
async def test_a_commit_without_an_answer_that_did_not_happen_is_retried(
    bench: Bench, app: jobq.App, where: str
) -> None:
    handler = register(app, where, inside=without_an_answer(where, happened=False))

    async with bench.working(app):
        job = await bench.until_retried(bench.enqueue(handler))

    assert (job.failures, job.errors[0].error, kept(bench)) == (1, "sqlalchemy.exc.OperationalError", 0)
