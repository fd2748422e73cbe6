"""Statements whose answer never came, and rows that the server refuses: nothing is lost, nothing is done twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

import anyio
import pytest
from bench import Bench, Effects, Gate, assembly_of, break_statements, eventually

import jobq
from jobq import State

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobq.worker.link.LONGEST_PAUSE_SECONDS", 0.01)


def cut(name: str, *, times: int, every: int = 1) -> Callable[[str], BaseException | None]:
    """Loses the answers of one store function, so often, of every so many calls one."""
    calls = count()

    def breaks(called: str) -> BaseException | None:
        if called != name:
            return None
        call = next(calls)
        return ConnectionError("cut") if call % every == 0 and call < times * every else None

    return breaks


async def test_a1_jobs_of_a_claim_whose_answer_was_lost_run_once_and_cost_nothing(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Effects()

    @app.handler("k", max_attempts=1)
    async def handler() -> None:
        seen.add(jobq.current().job.id)

    async with bench.working(app) as worker:
        break_statements(assembly_of(worker).database, monkeypatch, cut("claim", times=50, every=2))
        ids = bench.enqueue_many(handler, 200)
        await bench.until_all_ended()

    assert Counter(seen.seen) == Counter(ids)
    assert {(job.state, job.failures) for job in map(bench.job, ids)} == {(State.DONE, 0)}
    assert worker.stats().reconciled >= 25 * 4
    assert worker.stats().refused == 0


async def test_a1_jobs_that_run_are_not_given_back_by_the_clearing_up(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, seen = Gate(), Effects()

    @app.handler("long")
    async def long() -> None:
        seen.add(jobq.current().job.attempt)
        await gate.pass_()

    quick: Any = app.handler("quick")(lambda: None)
    async with bench.working(app) as worker:
        id_ = bench.enqueue(long)
        await gate.until_waiting()
        break_statements(assembly_of(worker).database, monkeypatch, cut("claim", times=3))
        other = bench.enqueue(quick)
        await bench.until(other)
        gate.open()
        job = await bench.until(id_)

    assert (job.state, seen.seen, bench.job(other).failures) == (State.DONE, [1], 0)


async def test_a3_a_worker_that_leaves_with_a_claim_unanswered_gives_back_what_it_does_not_know(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler: Any = app.handler("k")(lambda: None)

    async with bench.working(app) as worker:
        assembly, real, calls = assembly_of(worker), assembly_of(worker).database.run, Effects()

        async def hang(function: Any, *args: Any, **kwargs: Any) -> Any:
            calls.add(function.__name__)
            result = await real(function, *args, **kwargs)
            if function.__name__ == "claim" and result.jobs:
                worker.stop()
                await anyio.sleep_forever()  # committed, and no answer
            return result

        monkeypatch.setattr(assembly.database, "run", hang)
        await eventually(lambda: "claim" in calls.seen, "the end of the claim before")
        ids = bench.enqueue_many(handler, 4)
        await eventually(lambda: not bench.workers(), "the worker's leave")

    assert {(job.state, job.attempt, job.failures) for job in map(bench.job, ids)} == {(State.PENDING, 1, 0)}


async def test_a3_a_worker_that_leaves_soon_after_a_lost_answer_gives_back_all(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler: Any = app.handler("k")(lambda: None)

    async with bench.working(app) as worker:
        assembly = assembly_of(worker)
        break_statements(assembly.database, monkeypatch, cut("claim", times=1))
        await bench.until(bench.enqueue(handler))  # so it has reconciled
        assert assembly.claims.may_have_unknown
        late = bench.add("k", worker_id=assembly.lease.worker_id, attempt=1)  # as by the claim that was lost

    assert (bench.job(late).state, bench.job(late).failures) == (State.PENDING, 0)


@pytest.mark.parametrize("function", ["finish", "put_back"])
async def test_an_end_whose_answer_was_lost_is_written_once_and_counted_once(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    @app.handler("finish")
    async def fine() -> str:
        return "fine"

    @app.handler("put_back", retry=lambda failures, error: timedelta(hours=1))
    async def fails() -> None:
        raise ValueError("no")

    async with bench.working(app) as worker:
        break_statements(assembly_of(worker).database, monkeypatch, cut(function, times=3))
        ids = bench.enqueue_many(fine if function == "finish" else fails, 3)
        await eventually(lambda: worker.stats().held == 0 and worker.stats().claimed == 3, "the ends' being written")

    jobs = [bench.job(id_) for id_ in ids]
    expected = (State.DONE, 0) if function == "finish" else (State.PENDING, 1)
    assert {(job.state, job.failures) for job in jobs} == {expected}
    stats = worker.stats()
    assert (stats.ok + stats.retry, stats.refused) == (3, 0)


async def test_a_text_whose_answer_was_lost_is_written_and_counted_once(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.handler("k")
    async def handler() -> str:
        async with jobq.current().transaction():
            pass
        return "fine"

    async with bench.working(app) as worker:
        break_statements(assembly_of(worker).database, monkeypatch, cut("set_outcome", times=2, every=2))
        ids = bench.enqueue_many(handler, 3)
        await eventually(lambda: worker.stats().held == 0 and worker.stats().claimed == 3, "the ends' being written")

    assert {bench.job(id_).outcome for id_ in ids} == {"ok: fine"}
    assert worker.stats().ok == 3


async def test_an_end_is_written_once_the_database_can_be_written_to_again(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    handler: Any = app.handler("k")(gate.pass_)
    name = bench.engine.url.database

    async with bench.working(app) as worker:
        id_ = bench.enqueue(handler)
        await gate.until_waiting()
        bench.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        cut_off(bench)
        gate.open()
        await eventually(lambda: worker.stats().away_for and not worker.stats().running, "a refused write")
        bench.execute(f'SET default_transaction_read_only = off; ALTER DATABASE "{name}" RESET ALL')
        cut_off(bench)
        job = await bench.until(id_)

    assert (job.state, job.attempt, job.failures) == (State.DONE, 1, 0)


def cut_off(bench: Bench) -> None:
    """End all connections but the test's own."""
    bench.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.outcome LIKE 'ok: refuse%' THEN RAISE EXCEPTION 'not this one' USING ERRCODE = '22P05'; END IF;
  IF NEW.kind = 'hopeless' THEN RAISE EXCEPTION 'never' USING ERRCODE = '23514'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON jobq.finished_jobs FOR EACH ROW EXECUTE FUNCTION refuse();
"""


async def test_a_row_that_the_server_refuses_ends_as_an_error_and_its_neighbours_are_recorded(
    bench: Bench, app: jobq.App
) -> None:
    bench.execute(REFUSE)
    gate = Gate()

    @app.handler("k", max_attempts=1)
    async def handler(n: int) -> str:
        await gate.pass_()
        return "refuse" if n == 3 else "fine"

    with bench.connect() as connection:
        ids = [one.id for one in jobq.enqueue_many(connection, handler, [{"n": n} for n in range(8)])]
    async with bench.working(app, concurrency=8):
        await gate.until_waiting(8)
        gate.open()
        await bench.until_all_ended()

    refused = bench.job(ids.pop(3))
    assert {bench.job(id_).outcome for id_ in ids} == {"ok: fine"}
    assert (refused.state, refused.failures) == (State.DEAD, 1)
    assert refused.errors[0].message == "the result could not be stored: SQLSTATE 22P05 (ok: refuse)"


async def test_a_job_whose_end_cannot_be_recorded_at_all_runs_again_and_stops_nobody(
    bench: Bench, app: jobq.App
) -> None:
    bench.execute(REFUSE)
    seen = Effects()
    hopeless: Any = app.handler("hopeless", max_attempts=1)(lambda: seen.add("ran"))
    quick: Any = app.handler("quick")(lambda: None)

    async with bench.working(app):
        id_ = bench.enqueue(hopeless)
        await seen.until(2)
        assert (await bench.until(bench.enqueue(quick))).state is State.DONE
        bench.execute("DROP TRIGGER refuse ON jobq.finished_jobs")
        assert (await bench.until(id_)).state is State.DONE


async def test_a_text_that_the_server_refuses_does_not_end_the_worker(bench: Bench, app: jobq.App) -> None:
    bench.execute(REFUSE)

    @app.handler("k")
    async def handler() -> str:
        async with jobq.current().transaction():
            pass
        return "refuse"

    quick: Any = app.handler("quick")(lambda: None)
    async with bench.working(app) as worker:
        job = await bench.until(bench.enqueue(handler))
        await eventually(lambda: not worker.stats().held, "the text's being given up")
        await bench.until(bench.enqueue(quick))

    assert (job.state, bench.job(job.id).outcome) == (State.DONE, None)
