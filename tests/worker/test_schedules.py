"""Workers fire the schedules that their code holds: by the database's clock, each tick once, with a fate each."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import sqlalchemy as sa
from bench import NEVER, Bench, Effects, Gate, eventually

import jobq
from jobq import State
from jobq.schedule import Schedule
from jobq.store import scheduling as store
from jobq.tables import all_jobs, jobs, schedules

pytestmark = pytest.mark.anyio
SECOND = timedelta(seconds=1)
EVERY_SECOND = jobq.every(SECOND, name="each")


def row(bench: Bench, name: str) -> Any:
    return next(iter(bench.execute(sa.select(schedules).where(schedules.c.name == name))), None)


def fates(bench: Bench, name: str) -> tuple[int, int, int]:
    """(enqueued, skipped, missed), none before the schedule is there."""
    found = row(bench, name)
    return (0, 0, 0) if found is None else (found.enqueued, found.skipped, found.missed)


def ticks(bench: Bench, name: str) -> list[datetime]:
    """Those that jobs were enqueued for, in the order of the jobs."""
    tick = all_jobs.c.meta["tick"].astext
    wanted = sa.select(tick).where(all_jobs.c.meta["schedule"].astext == name).order_by(all_jobs.c.id)
    return [datetime.fromisoformat(text) for (text,) in bench.execute(wanted)]


def settled_long_ago(bench: Bench, app: jobq.App, name: str, ago: timedelta) -> datetime:
    """The schedule was at work, and its workers were down since; the last tick before."""
    with bench.connect() as connection:
        store.publish(connection, app.schedules.values())
        moved = sa.update(schedules).where(schedules.c.name == name).values(last_tick=schedules.c.last_tick - ago)
        return connection.execute(moved.returning(schedules.c.last_tick)).scalar_one()


def far_from_now(bench: Bench) -> datetime:
    """A time of day and a minute of the hour at which no tick comes while a test runs."""
    return bench.execute("SELECT now()")[0][0].astimezone(UTC) + timedelta(hours=12, minutes=30)


async def until_enqueued(bench: Bench, name: str, number: int) -> None:
    await eventually(lambda: fates(bench, name)[0] >= number, f"{number} jobs of {name}")


def assert_each_tick_has_one_fate(bench: Bench, name: str, schedule: Schedule) -> None:
    found = row(bench, name)
    assert sum(fates(bench, name)) == schedule.passed(found.first_seen_at, found.last_tick).count
    enqueued = ticks(bench, name)
    assert len(set(enqueued)) == len(enqueued) == found.enqueued


async def test_f41_two_workers_fire_each_tick_once(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    app.schedule(EVERY_SECOND, app.handler("k")(lambda: None))

    async with bench.working(app), bench.working(app):
        await until_enqueued(bench, "each", 3)

    assert_each_tick_has_one_fate(bench, "each", EVERY_SECOND)
    assert {after - before for before, after in pairwise(ticks(bench, "each"))} <= {SECOND, 2 * SECOND}
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_tick_starts_its_job_without_any_poll(bench: Bench, app: jobq.App) -> None:
    effects = Effects()

    @app.every(SECOND)
    @app.handler("k")
    async def k() -> None:
        effects.add(datetime.now(UTC))

    async with bench.working(app, poll_interval=NEVER):
        await effects.until(2)


async def test_a_schedule_is_fired_where_nothing_is_listened_for(bench: Bench, app: jobq.App) -> None:
    app.schedule(EVERY_SECOND, app.handler("k")(lambda: None))

    async with bench.working(app, listen=False):
        await until_enqueued(bench, "each", 1)


async def test_an_app_without_schedules_asks_for_none(bench: Bench, app: jobq.App) -> None:
    handler: Any = app.handler("k")(lambda: None)
    bench.execute("DROP TABLE jobq.schedules")  # whoever looked there would end the worker

    async with bench.working(app):
        await bench.until(bench.enqueue(handler))


async def test_a8_both_schedules_fire(bench: Bench) -> None:
    one, other = jobq.App(), jobq.App()
    one.schedule(jobq.every(SECOND), one.handler("one")(lambda: None))
    other.schedule(jobq.every(SECOND), other.handler("other")(lambda: None))

    async with bench.working(one), bench.working(other):
        await until_enqueued(bench, "one", 2)
        await until_enqueued(bench, "other", 2)
        with bench.connect() as connection:
            assert [(each.name, each.held) for each in jobq.schedules(connection)] == [("one", True), ("other", True)]

    with bench.connect() as connection:
        assert [each.held for each in jobq.schedules(connection)] == [False, False]


async def test_a8_two_versions_of_a_schedule_say_so_and_go_on(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    old, new = jobq.App(), jobq.App()
    old.schedule(jobq.every(SECOND, name="s"), old.handler("old")(lambda: None))
    new.schedule(jobq.every(2 * SECOND, name="s"), new.handler("new")(lambda: None))
    caplog.set_level(logging.INFO, "jobq.worker")

    async with bench.working(old):
        await until_enqueued(bench, "s", 1)
        async with bench.working(new):
            await until_enqueued(bench, "s", 4)

    said = [record.getMessage() for record in caplog.records if record.getMessage().startswith("schedule s")]
    assert said == ["schedule s was old by 1, from now on it is new by 2"]
    assert len(set(ticks(bench, "s"))) == fates(bench, "s")[0]


async def test_after_a_downtime_the_last_tick_is_fired_and_the_others_count_as_missed(
    bench: Bench, app: jobq.App
) -> None:
    minute = far_from_now(bench).minute
    schedule = jobq.cron(f"{minute} * * * *", name="h")
    app.schedule(schedule, app.handler("k")(lambda: None))
    settled_long_ago(bench, app, "h", timedelta(hours=5))

    async with bench.working(app):
        await until_enqueued(bench, "h", 1)

    assert fates(bench, "h") == (1, 0, 4)
    found = row(bench, "h")
    assert ticks(bench, "h") == [found.last_tick]
    assert (found.last_fate, found.last_tick.minute) == ("enqueued", minute)


async def test_after_a_downtime_none_is_fired_that_is_to_be_skipped(bench: Bench, app: jobq.App) -> None:
    schedule = jobq.cron(f"0 {far_from_now(bench).hour} * * *", name="h", catch_up="skip")
    app.schedule(schedule, app.handler("k")(lambda: None))
    settled_long_ago(bench, app, "h", timedelta(days=5))

    async with bench.working(app):
        await eventually(lambda: sum(fates(bench, "h")), "the fate of what has passed")

    assert fates(bench, "h") == (0, 0, 5)
    assert row(bench, "h").last_fate == "missed"


async def test_after_a_downtime_all_are_fired_one_after_the_other(bench: Bench, app: jobq.App) -> None:
    effects, hour = Effects(), far_from_now(bench).hour
    schedule = jobq.cron(f"0 {hour} * * *", name="h", catch_up="all")

    async def note() -> None:
        effects.add(len(open_jobs(bench)))

    app.schedule(schedule, app.handler("k")(note))
    seen = settled_long_ago(bench, app, "h", timedelta(days=6))

    async with bench.working(app):
        await effects.until(6)

    assert effects.seen == [1] * 6
    assert fates(bench, "h") == (6, 0, 0)
    assert ticks(bench, "h") == list(schedule.passed(seen, seen + timedelta(days=6)).last)


async def test_of_all_that_have_passed_a_hundred_are_fired_at_most(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    schedule = jobq.cron(f"0 {far_from_now(bench).hour} * * *", name="h", catch_up="all")
    app.schedule(schedule, app.handler("k")(gate.pass_))
    settled_long_ago(bench, app, "h", timedelta(days=150))

    async with bench.working(app):
        await gate.until_waiting()
        assert fates(bench, "h") == (1, 0, 50)
        gate.open()


async def test_a_tick_is_skipped_while_the_copy_before_runs(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    app.schedule(EVERY_SECOND, app.handler("k")(gate.pass_))

    async with bench.working(app):
        await gate.until_waiting()
        await eventually(lambda: fates(bench, "each")[1] >= 2, "skipped ticks")
        assert fates(bench, "each")[0] == 1
        gate.open()
        await until_enqueued(bench, "each", 2)

    assert_each_tick_has_one_fate(bench, "each", EVERY_SECOND)


async def test_a_failing_schedule_is_reported_once_and_the_others_go_on(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    events = Effects()
    app.on_error(events.add)
    app.schedule(jobq.every(SECOND), app.handler("bad")(lambda: None))
    app.schedule(jobq.every(SECOND), app.handler("good")(lambda: None))
    bench.execute(REFUSE)
    bench.execute("CREATE TRIGGER refuse BEFORE INSERT ON jobq.jobs FOR EACH ROW EXECUTE FUNCTION refuse()")

    async with bench.working(app):
        await until_enqueued(bench, "good", 3)
        assert sum(fates(bench, "bad")) == 0
        assert len(events) == 1
        bench.execute("DROP TRIGGER refuse ON jobq.jobs")
        await until_enqueued(bench, "bad", 1)

    assert said_of(caplog, "bad") == [
        "schedule bad cannot be fired: not these CONTEXT: PL/pgSQL function refuse() line 3 at RAISE; the others go on",
        "schedule bad can be fired again",
    ]
    assert fates(bench, "bad")[2] >= 1
    assert sum(fates(bench, "good")[1:]) == 0


REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.kind = 'bad' THEN RAISE EXCEPTION USING MESSAGE = 'not these'; END IF;
    RETURN NEW;
END $$
"""


async def test_a_predicate_that_raises_is_reported_once_and_the_others_go_on(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    events = Effects()
    app.on_error(events.add)
    app.schedule(jobq.when(lambda t: 1 / 0, name="bad"), app.handler("k")(lambda: None))
    app.schedule(jobq.every(SECOND), app.handler("good")(lambda: None))

    async with bench.working(app):
        await until_enqueued(bench, "good", 3)

    assert [type(event.error) for event in events.seen] == [ZeroDivisionError]
    assert (events.seen[0].job, events.seen[0].final) == (None, False)
    assert said_of(caplog, "bad") == ["schedule bad cannot be fired: division by zero; the others go on"]


async def test_a_minute_at_which_a_predicate_raises_is_none_and_the_others_are_fired(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    far = far_from_now(bench)

    def predicate(minute: datetime) -> bool:
        if minute.minute == (far.minute + 1) % 60:
            raise ValueError("not this one")
        return minute.minute == far.minute

    app.schedule(jobq.when(predicate, name="w"), app.handler("k")(lambda: None))
    settled_long_ago(bench, app, "w", timedelta(hours=4))

    async with bench.working(app):
        await until_enqueued(bench, "w", 1)

    assert fates(bench, "w") == (1, 0, 3)
    assert said_of(caplog, "w")[:2] == [
        "schedule w cannot be fired: not this one; the others go on",
        "schedule w can be fired again",
    ]


async def test_a_predicates_minutes_are_fired(bench: Bench, app: jobq.App) -> None:
    asked: list[datetime] = []
    app.schedule(jobq.when(lambda t: asked.append(t) or t.minute % 15 == 0, name="w"), app.handler("k")(lambda: None))
    settled_long_ago(bench, app, "w", timedelta(hours=2))

    async with bench.working(app):
        await until_enqueued(bench, "w", 1)

    assert fates(bench, "w") in [(1, 0, 7), (2, 0, 7)]
    assert {tick.minute % 15 for tick in ticks(bench, "w")} == {0}
    assert len(asked) == len(set(asked)), "a minute was asked about twice"


async def test_a_row_that_is_deleted_by_hand_is_written_again(bench: Bench, app: jobq.App) -> None:
    app.schedule(EVERY_SECOND, app.handler("k")(lambda: None))

    async with bench.working(app):
        await until_enqueued(bench, "each", 1)
        bench.execute(sa.delete(schedules))
        await until_enqueued(bench, "each", 1)


async def test_f42_a_lost_connection_loses_no_tick(bench: Bench, app: jobq.App) -> None:
    app.schedule(EVERY_SECOND, app.handler("k")(lambda: None))

    async with bench.working(app):
        await until_enqueued(bench, "each", 1)
        bench.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE 'jobq %'"
        )
        await until_enqueued(bench, "each", 3)

    assert_each_tick_has_one_fate(bench, "each", EVERY_SECOND)


async def test_f59_schedules_are_fired_in_another_schema(bench: Bench, app: jobq.App) -> None:
    engine = sa.create_engine(bench.url, execution_options={"schema_translate_map": {"jobq": "Other"}})
    bench.move_tables("Other")
    effects = Effects()
    app.schedule(EVERY_SECOND, app.handler("k")(lambda: effects.add(None)))

    async with bench.working(app, engine, poll_interval=NEVER):
        await effects.until(1)

    with engine.connect() as connection:
        assert jobq.schedules(connection)[0].enqueued >= 1
    engine.dispose()


@pytest.mark.parametrize("hours", [-1, 1])
async def test_f38_a_host_whose_clock_is_an_hour_off_works_as_any_other(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    class Shifted(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(hours=hours)

    effects = Effects()
    handler: Any = app.handler("k", max_attempts=2, retry=lambda failures, error: SECOND)(failing_once(effects))
    app.schedule(EVERY_SECOND, app.handler("periodic")(lambda: None))
    monkeypatch.setattr("jobq.preparing.datetime", Shifted)  # the one place that looks at this clock: whom to wake

    async with bench.working(app):
        id_ = bench.enqueue(handler)
        job = await bench.until(id_)
        await until_enqueued(bench, "each", 2)

    assert (job.state, job.attempt) == (State.DONE, 2)
    assert timedelta(0) <= job.run_at - job.errors[0].at <= 2 * SECOND
    assert_each_tick_has_one_fate(bench, "each", EVERY_SECOND)
    ((ahead,),) = bench.execute(sa.select(sa.func.max(schedules.c.last_tick) <= sa.func.now()))
    assert ahead


def failing_once(effects: Effects) -> Any:
    async def fail() -> None:
        effects.add(None)
        if len(effects) == 1:
            raise ValueError("the first time")

    return fail


def open_jobs(bench: Bench) -> Sequence[Any]:
    return bench.execute(sa.select(jobs.c.id))


def said_of(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    return [text for record in caplog.records if (text := record.getMessage()).startswith(f"schedule {name} ")]
