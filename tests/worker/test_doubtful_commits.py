"""A COMMIT of `jobq.current().transaction()` whose answer was lost: the tables say whether it happened."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy.exc as sa_exc
from bench import Bench, assembly_of, break_statements, eventually
from own_transactions import both, kept, register

import jobq
from jobq import State
from jobq.worker import handler_engines

pytestmark = pytest.mark.anyio
SLEEPY = (
    "CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1.5); RETURN NULL; END $$"
)


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


@both
async def test_a_commit_that_is_merely_slow_goes_on_and_is_not_repeated(
    bench: Bench, app: jobq.App, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler_engines, "END_SECONDS", 0.1)
    bench.execute(SLEEPY)
    bench.execute(
        "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION be_slow()"
    )
    handler = register(app, where)

    async with bench.working(app, bench.url):
        job = await bench.until(bench.enqueue(handler))

    assert (job.state, job.attempt, job.failures, kept(bench)) == (State.DONE, 1, 0, 1)


@both
async def test_a_lost_connection_does_not_hide_the_error_of_the_handler(
    bench: Bench, app: jobq.App, where: str
) -> None:
    def fail(_: Any) -> None:
        bench.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE 'jobq % handlers'"
        )
        raise ValueError("no")

    handler = register(app, where, inside=fail)

    async with bench.working(app, bench.url):
        job = await bench.until_retried(bench.enqueue(handler))

    assert (job.errors[0].error, kept(bench)) == ("ValueError", 0)
