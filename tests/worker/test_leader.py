"""One worker of the fleet leads: it sums up what ended and deletes what has been kept for its time."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest
import sqlalchemy as sa
from bench import HOUR, PATIENCE_SECONDS, Bench, eventually
from sqlalchemy.ext.asyncio import create_async_engine

import jobq
from jobq.store.leading import Office
from jobq.tables import finished_jobs, jobs, leader, sums

pytestmark = pytest.mark.anyio
NOW = sa.func.now()
IN_OFFICE = "SELECT workers.name FROM jobq.workers JOIN jobq.leader ON id = worker_id WHERE leader.lease_until > now()"


async def until_leads(worker: jobq.Worker) -> None:
    await eventually(lambda: worker.stats().is_leader, f"{worker.name} leading")


def end(bench: Bench, kind: str, *, ago: timedelta, expired: bool = True) -> int:
    """A job that ended so long ago."""
    id_ = bench.add(kind)
    row = sa.select(*list(jobs.c), sa.literal("done"), NOW - ago, NOW + timedelta(hours=-1 if expired else 1))
    names = [*[c.name for c in jobs.c], "state", "finished_at", "expires_at"]
    bench.execute(sa.insert(finished_jobs).from_select(names, row.where(jobs.c.id == id_), include_defaults=False))
    bench.execute(sa.delete(jobs).where(jobs.c.id == id_))
    return id_


def ended(bench: Bench) -> set[int]:
    return {row.id for row in bench.execute(sa.select(finished_jobs.c.id))}


def another_leads(bench: Bench) -> None:
    bench.execute(sa.insert(leader).values(name="maintenance", worker_id=7, term=5, lease_until=NOW + HOUR))


async def test_one_worker_leads_and_the_next_one_follows_when_it_has_stopped(bench: Bench, app: jobq.App) -> None:
    async with bench.working(app, name="second") as second:
        async with bench.working(app, name="first") as first:
            await eventually(lambda: any(w.stats().is_leader for w in (first, second)), "a leader")
            leads = {worker.name: worker.stats().is_leader for worker in (first, second)}
            assert sum(leads.values()) == 1
            assert [row.name for row in bench.execute(IN_OFFICE)] == [name for name, is_ in leads.items() if is_]
        await until_leads(second)
        assert [row.name for row in bench.execute(IN_OFFICE)] == ["second"]
    assert bench.execute(IN_OFFICE) == []


async def test_the_office_is_free_at_once_after_a_clean_stop(bench: Bench, app: jobq.App) -> None:
    async with bench.working(app) as worker:
        await until_leads(worker)

    async with bench.working(app) as worker:
        await until_leads(worker)

    assert [row.term for row in bench.execute(sa.select(leader.c.term))] == [2]


async def test_the_leader_deletes_what_has_been_kept_for_its_time_after_it_was_summed(
    bench: Bench, app: jobq.App
) -> None:
    gone = {end(bench, "k", ago=timedelta(minutes=minutes)) for minutes in (20, 40, 180)}
    kept = end(bench, "k", ago=timedelta(minutes=20), expired=False)

    async with bench.working(app):
        await eventually(lambda: ended(bench) == {kept}, f"the end of {len(gone)} rows")

    of_hours = bench.execute(sa.select(sa.func.sum(sums.c.finished)).where(sums.c.minutes == 60))
    assert [row[0] for row in of_hours] == [4]
    with bench.connect() as connection:
        assert jobq.stats(connection).states[jobq.State.DONE] == 4


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
async def test_cleaning_can_be_a_job_of_the_applications_own(bench: Bench, app: jobq.App, is_async: bool) -> None:
    another_leads(bench)
    gone, kept = end(bench, "k", ago=timedelta(hours=2)), end(bench, "k", ago=timedelta(hours=2), expired=False)

    @app.handler("clean")
    def clean() -> str:
        return f"{jobq.clean(bench.engine)} deleted"

    @app.handler("clean.async")
    async def clean_async() -> str:
        engine = create_async_engine(bench.url)
        deleted = await jobq.clean_async(engine)
        await engine.dispose()
        return f"{deleted} deleted"

    async with bench.working(app):
        job = await bench.until(bench.enqueue(clean_async if is_async else clean))

    assert job.outcome == "ok: 1 deleted"
    assert kept in ended(bench)
    assert gone not in ended(bench)


async def test_a_worker_that_finds_another_in_office_maintains_nothing(bench: Bench, app: jobq.App) -> None:
    another_leads(bench)
    kept = end(bench, "k", ago=timedelta(hours=2))

    async with bench.working(app) as worker:
        assembly = worker._assembly
        assert assembly is not None
        await assembly.election.run_once()
        await assembly.maintainer._look()
        assert not worker.stats().is_leader

        await assembly.maintainer.run_once(Office(assembly.lease.worker_id or 0, 5))

        assert ended(bench) == {kept}
        assert bench.execute(sa.select(sums.c.minutes)) == []


async def test_a_leader_that_was_deposed_stops_to_lead(bench: Bench, app: jobq.App) -> None:
    async with bench.working(app) as worker:
        await until_leads(worker)
        bench.execute(sa.update(leader).values(worker_id=7, term=9, lease_until=NOW + HOUR))

        await eventually(lambda: not worker.stats().is_leader, "the end of its term")

    assert bench.execute(sa.select(leader.c.worker_id, leader.c.term)) == [(7, 9)], "another's office is left alone"


async def test_a_leader_that_lost_its_lease_as_a_worker_gives_up_the_office_of_its_former_id(
    bench: Bench, app: jobq.App
) -> None:
    async with bench.working(app) as worker:
        await until_leads(worker)
        former = worker.stats().worker_id
        assembly = worker._assembly
        assert assembly is not None
        assert former is not None

        assembly._lease_lost(former, "for the test")
        await eventually(lambda: worker.stats().worker_id not in (None, former), "a new id")

        await until_leads(worker)
        assert bench.execute(sa.select(leader.c.worker_id, leader.c.term)) == [(worker.stats().worker_id, 2)]


async def test_a_stop_does_not_wait_for_the_cleaner(bench: Bench, app: jobq.App) -> None:
    end(bench, "k", ago=timedelta(hours=2))
    with bench.engine.connect() as holder:
        holder.exec_driver_sql("LOCK TABLE jobq.sums IN ACCESS EXCLUSIVE MODE")
        async with bench.working(app, grace=timedelta(seconds=1)) as worker:
            await until_leads(worker)
            with anyio.fail_after(PATIENCE_SECONDS):
                await eventually(lambda: waits_for_lock(bench), "the maintainer waiting")
    assert bench.workers() == []


def waits_for_lock(bench: Bench) -> bool:
    waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return bool(bench.execute(waiting))


async def test_a10_jobs_of_a_kind_that_nobody_knows_are_said_once_with_their_number(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("jobq.worker.leader.LOOK", timedelta(milliseconds=20))
    monkeypatch.setattr("jobq.worker.leader.MAINTAIN", timedelta(milliseconds=50))
    app.handler("k")(lambda: None)
    nobodys = jobq.kind("gone", queue="default")
    with bench.connect() as connection:
        jobq.enqueue_many(connection, nobodys, [{}] * 300)
        connection.commit()
    later = bench.enqueue(nobodys.options(priority=3))

    async with bench.working(app):
        said = "for kind gone, which no live worker knows"
        await eventually(lambda: said in caplog.text, "a word about them")
        old = end(bench, "other", ago=timedelta(minutes=20))
        await eventually(lambda: old not in ended(bench), "another round")

    assert [r.getMessage().partition(" (")[0] for r in caplog.records if said in r.getMessage()] == [
        f"301 jobs wait {said}"
    ]
    assert bench.job(later).attempt == 0
