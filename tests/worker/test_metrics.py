"""What Prometheus gets: read with its own parser, from a registry and over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from bench import Bench, Gate, eventually
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import scoped_session, sessionmaker

import jobq
from jobq.events import JobEnd, JobEnds
from jobq.metrics import Collector

pytestmark = pytest.mark.anyio
FRESH = timedelta(0)


class Scrape:
    """One scrape, parsed."""

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self.samples = {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples.get((name, *sorted(labels.items())))


def scraped(collector: Collector) -> Scrape:
    registry = CollectorRegistry()
    registry.register(collector)
    return Scrape(generate_latest(registry).decode())


async def scrape(collector: Collector) -> Scrape:
    """In a thread, as a server of metrics does it."""
    return await anyio.to_thread.run_sync(scraped, collector)


@pytest.fixture
def engine(bench: Bench) -> Iterator[sa.Engine]:
    engine = sa.create_engine(bench.url)
    yield engine
    engine.dispose()


async def test_gauges_of_the_queues_are_read_from_the_database(bench: Bench, engine: sa.Engine) -> None:
    bench.add("k", queue="email", run_at=sa.func.now() - timedelta(minutes=10))
    bench.add("k", queue="email", run_at=sa.func.now() + timedelta(minutes=10))
    bench.add("k", queue="slow")
    with bench.connect() as connection:
        jobq.pause(connection, "slow", timedelta(hours=1), reason="upgrade")

    found = await scrape(Collector(engine))

    assert found.value("jobq_up") == 1
    assert found.value("jobq_workers") == 0
    assert found.value("jobq_unknown_kind_jobs") == 3
    assert 600 <= (found.value("jobq_queue_oldest_age_seconds", queue="email") or 0) < 700
    assert {
        state: found.value("jobq_queue_jobs", queue="email", state=state)
        for state in ("ready", "scheduled", "running", "dead")
    } == {"ready": 1, "scheduled": 1, "running": 0, "dead": 0}
    assert found.value("jobq_queue_paused", queue="email") == 0
    assert found.value("jobq_queue_paused", queue="slow") == 1
    assert found.value("jobq_ready") is None


async def test_ends_are_counted_by_queue_kind_and_outcome(bench: Bench, app: jobq.App, engine: sa.Engine) -> None:
    tries: list[int] = []

    @app.handler("k", queue="email", max_attempts=2, retry=lambda failures, error: timedelta(0))
    async def handler(outcome: str) -> Any:
        if outcome == "snooze" and not tries:
            tries.append(1)
            raise jobq.Snooze(timedelta(milliseconds=1))
        if outcome == "err":
            raise ValueError("no")
        return {"fail": jobq.Fail("no"), "skip": jobq.Skip()}.get(outcome)

    async with bench.working(app) as worker:
        collector = Collector(engine, worker, max_age=FRESH)
        for outcome in ("ok", "ok", "fail", "skip", "err", "snooze"):
            await bench.until(bench.enqueue(handler, outcome))
        await eventually(lambda: worker.stats().held == 0, "all ends being recorded")
        found = await scrape(collector)

    where = {"queue": "email", "kind": "k"}
    outcomes = {
        word: found.value("jobq_finished_total", outcome=word, **where) for word in ("ok", "fail", "skip", "err")
    }
    assert outcomes == {"ok": 3, "fail": 1, "skip": 1, "err": 1}
    assert found.value("jobq_put_back_total", reason="retry", **where) == 1
    assert found.value("jobq_put_back_total", reason="snooze", **where) == 1
    assert found.value("jobq_wait_seconds_count", **where) == 8
    assert found.value("jobq_duration_seconds_count", **where) == 8
    assert found.value("jobq_duration_seconds_bucket", le="+Inf", **where) == 8
    assert found.families["jobq_finished"].type == "counter"
    assert found.families["jobq_wait_seconds"].type == "histogram"


async def test_the_counters_of_the_worker_are_those_of_its_stats(
    bench: Bench, app: jobq.App, engine: sa.Engine
) -> None:
    gate = Gate()
    handler: Any = app.handler("k")(gate.pass_)

    async with bench.working(app) as worker:
        collector = Collector(engine, worker, max_age=FRESH)
        bench.enqueue(handler)
        await gate.until_waiting()
        await eventually(lambda: worker.is_ready, "a worker that is ready")
        at_work = await scrape(collector)
        gate.open()
        await bench.until_all_ended()
    ended = await scrape(collector)

    names = ("jobq_running", "jobq_ready", "jobq_workers", "jobq_claimed_total")
    assert [at_work.value(name) for name in names] == [1, 1, 1, 1]
    assert [ended.value(name) for name in names] == [0, 0, 0, 1]
    for name in ("rescued", "fenced_writes", "leases_lost", "lost", "given_back"):
        assert at_work.value(f"jobq_{name}_total") == 0


async def test_each_counter_has_its_own_number(
    bench: Bench, app: jobq.App, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("claims", "claimed", "given_back", "lost", "leases_lost", "rescued", "refused")
    numbers = {name: n for n, name in enumerate(names, start=1)}
    async with bench.working(app) as worker:
        found = replace(worker.stats(), **numbers)
    monkeypatch.setattr(jobq.Worker, "stats", lambda worker: found)

    read = await scrape(Collector(engine, worker))

    exported = {"refused": "fenced_writes"}
    assert {name: read.value(f"jobq_{exported.get(name, name)}_total") for name in names} == numbers


async def test_a_worker_that_has_not_begun_breaks_no_scrape(bench: Bench, app: jobq.App, engine: sa.Engine) -> None:
    found = await scrape(Collector(engine, jobq.Worker(app, bench.url)))

    assert (found.value("jobq_ready"), found.value("jobq_running")) == (0, None)


async def test_nothing_of_a_job_but_queue_and_kind_becomes_a_label(
    bench: Bench, app: jobq.App, engine: sa.Engine
) -> None:
    @app.handler("k", max_attempts=1)
    async def handler(token: str) -> None:
        raise ValueError(token)

    async with bench.working(app) as worker:
        collector = Collector(engine, worker, max_age=FRESH)
        for n in range(3):
            await bench.until(bench.enqueue(handler, f"hunter{n}"))
        found = await scrape(collector)

    labels = {name for key in found.samples for name, _ in key[1:] if str(key[0]).startswith("jobq_")}
    assert labels <= {"queue", "kind", "state", "outcome", "reason", "le"}
    assert "hunter" not in str(found.samples)


async def test_a_database_that_is_away_leaves_the_workers_own_counters(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    handler: Any = app.handler("k")(lambda: None)
    nowhere = sa.create_engine("postgresql+psycopg://u:sekret@127.0.0.1:1/none")

    async with bench.working(app) as worker:
        collector = Collector(nowhere, worker)
        await bench.until(bench.enqueue(handler))
        await eventually(lambda: worker.stats().held == 0, "the end being recorded")
        found = await scrape(collector)

    assert found.value("jobq_up") == 0
    assert found.value("jobq_workers") is None
    assert found.value("jobq_finished_total", queue="default", kind="k", outcome="ok") == 1
    assert "sekret" not in caplog.text


async def test_locked_tables_hold_up_a_scrape_no_longer_than_its_patience(bench: Bench, engine: sa.Engine) -> None:
    collector = Collector(engine, max_age=FRESH, patience=timedelta(milliseconds=200))

    with bench.connect() as connection:
        connection.exec_driver_sql("LOCK TABLE jobq.jobs IN ACCESS EXCLUSIVE MODE")
        locked = await scrape(collector)
        connection.rollback()
    await eventually(lambda: scraped_up(collector) == 1, "a scrape that could read")

    assert locked.value("jobq_up") == 0


def scraped_up(collector: Collector) -> float | None:
    return scraped(collector).value("jobq_up")


async def test_a_scrape_in_the_event_loop_does_not_wait_for_the_database(bench: Bench, engine: sa.Engine) -> None:
    collector = Collector(engine, max_age=FRESH)
    threads = {thread.name for thread in threading.enumerate()}

    first = scraped(collector)
    await eventually(lambda: scraped_up(collector) == 1, "a scrape with what was read meanwhile")

    assert first.value("jobq_up") is None
    assert "jobq-metrics" not in threads


@pytest.mark.parametrize("make", [sessionmaker, lambda engine: scoped_session(sessionmaker(engine))])
async def test_a_sessionmaker_will_do_and_leaves_no_session_open(bench: Bench, engine: sa.Engine, make: Any) -> None:
    found = await scrape(Collector(make(engine)))

    assert found.value("jobq_up") == 1
    assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]


async def test_what_cannot_be_read_from_in_a_thread_is_refused(bench: Bench) -> None:
    engine = create_async_engine(bench.url)

    for wrong in (engine, async_sessionmaker(engine), bench.url):
        with pytest.raises(jobq.BindError, match="Collector takes an Engine or a sessionmaker"):
            Collector(wrong)  # type: ignore[arg-type]


async def test_on_ends_hears_of_what_was_recorded_together_and_may_fail(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[JobEnds] = []
    queues = ["email", "default"]
    handler: Any = app.handler("k")(lambda: jobq.Skip(f"job {jobq.current().job.id} has nothing to send"))
    async with bench.working(app) as worker:

        @worker.on_ends
        def broken(ends: JobEnds) -> None:
            raise SystemExit(3)

        worker.on_ends(heard.append)
        for queue in queues:
            bench.enqueue_many(handler.options(queue=queue), 20)
        await eventually(lambda: sum(len(ends.waits) for ends in heard) == 40, "all ends")

    assert {(ends.queue, ends.kind, ends.word) for ends in heard} == {(queue, "k", "skip") for queue in queues}
    assert len(heard) < 40
    assert all(0 <= wait < 60 for ends in heard for wait in ends.waits)
    assert all(0 < each < 60 for ends in heard for each in ends.durations)
    assert "an on_error, on_end or on_ends callback raised" in caplog.text


async def test_on_end_hears_of_each_recorded_end_and_may_fail(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[JobEnd] = []

    @app.handler("k", queue="email", retry=lambda failures, error: timedelta(0))
    async def handler() -> str:
        if jobq.current().job.attempt == 1:
            raise ValueError
        return "sent"

    async with bench.working(app) as worker:

        @worker.on_end
        def broken(end: JobEnd) -> None:
            raise SystemExit(3)

        worker.on_end(heard.append)
        await bench.until(bench.enqueue(handler))
        await eventually(lambda: len(heard) == 2, "two ends")

    assert [(end.queue, end.kind, end.word) for end in heard] == [("email", "k", "retry"), ("email", "k", "ok")]
    assert all(timedelta(0) <= end.wait < timedelta(minutes=1) for end in heard)
    assert all(timedelta(0) < end.duration < timedelta(minutes=1) for end in heard)
    assert "an on_error, on_end or on_ends callback raised" in caplog.text
