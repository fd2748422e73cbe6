"""Jobs that other hands than Python's enqueue, and jobs that handlers enqueue."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from bench import Bench, Effects, Gate

import jobq
from jobq import State
from jobq.tables import finished_jobs, kinds

pytestmark = pytest.mark.anyio

LONG = timedelta(hours=1)
TRIGGER = """
CREATE TABLE orders (id int PRIMARY KEY, email text);
CREATE FUNCTION order_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM jobq.enqueue('receipt', jsonb_build_object('order_id', NEW.id, 'email', NEW.email));
    RETURN NULL;
END $$;
CREATE TRIGGER jobs AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION order_jobs();
"""


async def test_a_worker_runs_what_a_trigger_enqueues_as_its_handler_says(bench: Bench, app: jobq.App) -> None:
    """Told at once: the worker polls once an hour."""
    seen = Effects()
    bench.execute(TRIGGER)

    @app.handler("receipt", queue="mail", priority=0, max_attempts=7, unique=("order_id",))
    def receipt(order_id: int, email: str) -> str:
        seen.add((order_id, email))
        return email

    async with bench.working(app, poll_interval=LONG):
        await bench.until_listening()
        bench.execute("INSERT INTO orders SELECT n, 'é' || n FROM generate_series(1, 3) AS n")
        await seen.until(3)
        await bench.until_all_ended()

    assert sorted(seen.seen) == [(n, f"é{n}") for n in (1, 2, 3)]
    rows = bench.execute(sa.select(finished_jobs).order_by(finished_jobs.c.outcome))
    assert [row.outcome for row in rows] == ["ok: é1", "ok: é2", "ok: é3"]
    assert {(row.queue, row.priority, row.max_attempts, row.kind) for row in rows} == {("mail", 0, 7, "receipt")}
    assert all(row.unique_key.startswith("receipt:") for row in rows)
    assert bench.execute(sa.select(kinds.c.unique_names, kinds.c.priority)) == [("order_id", 0)]


@pytest.mark.parametrize("on_conflict", ["ignore", "replace", "reschedule", "raise"])
async def test_a_job_that_enqueues_its_own_key_is_told_so(bench: Bench, app: jobq.App, on_conflict: Any) -> None:
    @app.handler("poll", unique=True, max_attempts=1)
    async def poll(page: int) -> None:
        async with jobq.current().transaction() as session:
            await jobq.enqueue_async(session, poll.options(on_conflict=on_conflict), page=page)

    @app.handler("many", unique=True, max_attempts=1)
    def many(page: int) -> str:
        with jobq.current().transaction() as session:
            try:
                jobq.enqueue_many(session, many.options(on_conflict=on_conflict), [{"page": 8}, {"page": page}])
            except jobq.UniqueKeyError as error:
                return f"holder {error.holder}"
        return "no error"

    async with bench.working(app):
        first = await bench.until(bench.enqueue(poll, 7))
        second = bench.enqueue(many, 7)
        await bench.until(second)

    assert first.state is State.DEAD
    assert f"is held by job {first.id}" in (first.outcome or "")
    assert bench.job(second).outcome == f"ok: holder {second}"  # the text follows the completion
    assert bench.execute(sa.select(finished_jobs.c.id).where(finished_jobs.c.args["page"].as_integer() == 8)) == []


async def test_a_job_may_enqueue_another_key_and_other_jobs_do_not_mind(bench: Bench, app: jobq.App) -> None:
    gate = Gate()

    @app.handler("poll", unique=True)
    async def poll(page: int) -> None:
        await gate.pass_()
        if page == 1:
            with bench.connect() as connection:
                assert jobq.enqueue(connection, poll, 2).created

    async with bench.working(app):
        id_ = bench.enqueue(poll, 1)
        await gate.until_waiting()
        with bench.connect() as connection:
            assert jobq.enqueue(connection, poll, 1) == jobq.Enqueued(id_, created=False)
        gate.open()
        assert set((await bench.until_all_ended()).values()) == {State.DONE}

    assert len(bench.execute(sa.select(finished_jobs.c.id))) == 2


async def test_a_replaced_job_runs_once_with_its_new_args(bench: Bench, app: jobq.App) -> None:
    seen = Effects()

    @app.handler("index", unique=("company_id",))
    def index(company_id: int, what: str) -> None:
        seen.add(what)

    bench.enqueue(index.options(delay=LONG), 1, "old")
    async with bench.working(app, poll_interval=LONG):
        await bench.until_listening()
        newest = index.options(on_conflict="replace", delay=timedelta(0))
        bench.enqueue(newest, 1, "new")
        await seen.until(1)
        await bench.until_all_ended()

    assert seen.seen == ["new"]
