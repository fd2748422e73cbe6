"""What the statements of schedules settle, whoever else is at work."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import add_worker
from sqlalchemy.ext.asyncio import create_async_engine

import jobq
from jobq.periodic import PeriodicJob
from jobq.schedule import Fate, Step
from jobq.store import scheduling as store
from jobq.store.scheduling import Changed, Due, Standing
from jobq.tables import jobs, schedules

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def app_with(*names: str, **options: Any) -> jobq.App:
    """Each schedule every second, of one handler."""
    app = jobq.App()
    handler: Any = app.handler("k")(lambda n=0: None)
    for name in names:
        app.schedule(jobq.every(SECOND, name=name), handler.options(**options), n=7)
    return app


def published(connection: sa.Connection, *names: str, ago: timedelta = HOUR, **options: Any) -> dict[str, PeriodicJob]:
    """Periodic jobs whose schedules were settled last so long ago."""
    app = app_with(*names, **options)
    store.publish(connection, app.schedules.values())
    connection.execute(sa.update(schedules).values(last_tick=schedules.c.last_tick - ago))
    return dict(app.schedules)


def due(connection: sa.Connection, periodic: PeriodicJob, *, missed: int = 0, fires: bool = True) -> Due:
    """A step to now."""
    look = store.look(connection, [periodic.name])
    seen = look.standing[periodic.name].last_tick
    return Due(periodic, seen, Step(seen + HOUR, missed, fires))


def rows(connection: sa.Connection) -> list[tuple[Any, ...]]:
    columns = schedules.c
    wanted = sa.select(columns.name, columns.last_fate, columns.enqueued, columns.skipped, columns.missed)
    return [tuple(row) for row in connection.execute(wanted.order_by(columns.name))]


def test_a_tick_is_settled_and_its_job_is_there(connection: sa.Connection) -> None:
    periodic = published(connection, "a", queue="q", priority=0, max_attempts=3, timeout=HOUR)["a"]
    step = due(connection, periodic, missed=4)

    assert store.fire(connection, [step]) == {"a": Fate.ENQUEUED}

    assert rows(connection) == [("a", "enqueued", 1, 0, 4)]
    assert store.look(connection, ["a"]).standing == {"a": Standing(step.step.tick, is_open=True)}
    job = connection.execute(sa.select(jobs)).one()
    assert (job.kind, job.queue, job.priority, job.max_attempts, job.args) == ("k", "q", 0, 3, {"n": 7})
    assert (job.unique_key, job.callsite) == ("schedule:a", "schedule:a")
    assert job.meta == {"timeout": 3600.0, "schedule": "a", "tick": f"{step.step.tick:%Y-%m-%dT%H:%M:%S.%fZ}"}
    assert job.run_at == job.created_at


def test_a_delay_counts_from_the_statement(connection: sa.Connection) -> None:
    periodic = published(connection, "a", delay=HOUR)["a"]

    store.fire(connection, [due(connection, periodic)])

    assert connection.execute(sa.select(jobs.c.run_at - jobs.c.created_at)).scalar_one() == HOUR


def test_a_job_is_told_of_in_the_statement_that_inserts_it(connection: sa.Connection, sent: list[str]) -> None:
    periodic = published(connection, "a", "b")
    steps = [due(connection, each) for each in periodic.values()]
    sent.clear()

    assert len(store.fire(connection, steps)) == 2

    (statement,) = sent  # a process that dies between two would lose the job or fire the tick twice
    assert "INSERT INTO" in statement
    assert "UPDATE" in statement
    assert "pg_notify" in statement


def test_f41_a_tick_that_is_settled_is_not_fired_again_even_when_its_job_has_ended(connection: sa.Connection) -> None:
    periodic = published(connection, "a")["a"]
    step = due(connection, periodic)
    store.fire(connection, [step])
    connection.execute(sa.delete(jobs))

    assert store.fire(connection, [step]) == {}

    assert rows(connection) == [("a", "enqueued", 1, 0, 0)]
    assert count(connection) == 0


def test_f41_a_step_computed_before_another_worker_settled_a_tick_does_nothing(connection: sa.Connection) -> None:
    """Otherwise the ticks up to the other one's would be counted twice."""
    periodic = published(connection, "a")["a"]
    stale = due(connection, periodic, missed=3599)
    other = Due(periodic, stale.seen, Step(stale.seen + SECOND, 0, fires=True))
    store.fire(connection, [other])

    assert store.fire(connection, [stale]) == {}

    assert rows(connection) == [("a", "enqueued", 1, 0, 0)]


def test_a_tick_is_skipped_while_the_copy_before_waits_or_runs(connection: sa.Connection) -> None:
    periodic = published(connection, "a", ago=3 * HOUR)["a"]
    store.fire(connection, [due(connection, periodic)])
    assert store.fire(connection, [due(connection, periodic, missed=2)]) == {"a": Fate.SKIPPED}
    connection.execute(sa.update(jobs).values(worker_id=7))

    assert store.fire(connection, [due(connection, periodic)]) == {"a": Fate.SKIPPED}

    assert rows(connection) == [("a", "skipped", 1, 2, 2)]
    assert count(connection) == 1


def test_ticks_that_are_only_missed_leave_no_job(connection: sa.Connection) -> None:
    periodic = published(connection, "a")["a"]

    assert store.fire(connection, [due(connection, periodic, missed=9, fires=False)]) == {"a": Fate.MISSED}

    assert rows(connection) == [("a", "missed", 0, 0, 9)]
    assert count(connection) == 0


def test_f38_a_tick_that_the_databases_clock_has_not_reached_is_not_fired(connection: sa.Connection) -> None:
    periodic = published(connection, "a", ago=HOUR - SECOND)["a"]  # so the step is a second ahead

    assert store.fire(connection, [due(connection, periodic)]) == {}

    assert rows(connection) == [("a", None, 0, 0, 0)]


def test_a_schedule_that_is_not_there_does_not_keep_others_from_theirs(connection: sa.Connection) -> None:
    periodic = published(connection, "a", "b")
    steps = [due(connection, each) for each in periodic.values()]
    connection.execute(sa.delete(schedules).where(schedules.c.name == "a"))

    assert store.fire(connection, steps) == {"b": Fate.ENQUEUED}
    assert store.look(connection, ["a", "b"]).standing.keys() == {"b"}


def test_the_clock_is_told_also_where_there_is_no_schedule(connection: sa.Connection) -> None:
    look = store.look(connection, ["nowhere"])

    assert look.now == connection.execute(sa.select(sa.func.now())).scalar_one()
    assert look.standing == {}


def test_a_schedule_whose_row_is_locked_is_left_and_the_others_are_fired(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        periodic = published(connection, "a", "b")
        steps = [due(connection, each) for each in periodic.values()]
    with engine.connect() as holder, autocommit(engine) as connection:
        holder.execute(sa.select(schedules).where(schedules.c.name == "a").with_for_update())

        assert store.fire(connection, steps) == {"b": Fate.ENQUEUED}
        holder.rollback()
        assert store.fire(connection, steps) == {"a": Fate.ENQUEUED}


def test_f41_many_that_fire_at_once_settle_each_tick_once(engine: sa.Engine) -> None:
    ticks, workers = 150, 6
    with engine.begin() as connection:
        periodic = published(connection, "a", ago=ticks * SECOND)["a"]
        begun = store.look(connection, ["a"]).standing["a"].last_tick
    with ThreadPoolExecutor(workers) as pool:
        fired = [pool.submit(fire_all, engine, periodic, begun + ticks * SECOND) for _ in range(workers)]
        taken = sum(each.result(60) for each in fired)

    with engine.connect() as connection:
        ((_, _, enqueued, skipped, missed),) = rows(connection)
        found = connection.execute(sa.select(jobs.c.meta["tick"].astext)).scalars().all()
    assert enqueued + skipped == taken
    assert enqueued + skipped + missed == ticks
    assert len(found) == len(set(found)) == enqueued


def fire_all(engine: sa.Engine, periodic: PeriodicJob, until: datetime) -> int:
    """As a worker that catches up, two ticks at a time; how many steps it took. Each frees the key for the next."""
    taken = 0
    free = sa.update(jobs).where(jobs.c.unique_key.is_not(None)).values(unique_key=None)
    with autocommit(engine) as connection:
        while (seen := store.look(connection, ["a"]).standing["a"].last_tick) < until:
            step = Step(seen + 2 * SECOND, missed=1, fires=True)
            taken += len(store.fire(connection, [Due(periodic, seen, step)]))
            connection.execute(free)
    return taken


def test_a_schedule_that_was_never_seen_begins_now(connection: sa.Connection) -> None:
    assert store.publish(connection, app_with("a").schedules.values()) == []

    look = store.look(connection, ["a"])
    assert look.standing["a"] == Standing(look.now, is_open=False)


def test_publishing_again_leaves_what_was_settled_as_it_is(connection: sa.Connection) -> None:
    periodic = published(connection, "a")["a"]
    step = due(connection, periodic)
    store.fire(connection, [step])

    assert store.publish(connection, [periodic]) == []

    assert store.look(connection, ["a"]).standing["a"].last_tick == step.step.tick
    assert rows(connection) == [("a", "enqueued", 1, 0, 0)]


def test_a_changed_schedule_goes_on_from_its_last_tick_and_says_what_it_was(connection: sa.Connection) -> None:
    before = published(connection, "a")["a"]
    seen = store.look(connection, ["a"]).standing["a"].last_tick
    app = jobq.App()
    other: Any = app.handler("other")(lambda: None)
    app.schedule(jobq.cron("@daily", name="a", tz="Europe/Paris", catch_up="all"), other)

    assert store.publish(connection, app.schedules.values()) == [Changed("a", "k", "1")]

    row = connection.execute(sa.select(schedules)).one()
    stored = (row.kind, row.form, row.expression, row.timezone, row.catch_up)
    assert stored == ("other", "cron", "@daily", "Europe/Paris", "all")
    assert row.last_tick == seen
    assert before.job.kind != row.kind


def test_a_change_of_options_alone_is_written_and_not_worth_a_word(connection: sa.Connection) -> None:
    published(connection, "a")

    assert store.publish(connection, app_with("a", priority=0).schedules.values()) == []

    assert connection.execute(sa.select(schedules.c.job["priority"].as_integer())).scalar_one() == 0


def test_a_schedule_is_run_by_hand_as_it_would_be_fired_and_that_is_no_tick(connection: sa.Connection) -> None:
    periodic = published(connection, "a", queue="q", priority=0, delay=HOUR)["a"]

    first = jobq.run_schedule(connection, "a")
    second = jobq.run_schedule(connection, "a")

    assert (second.id, second.created) == (first.id, False)
    assert rows(connection) == [("a", None, 0, 0, 0)]
    job = connection.execute(sa.select(jobs)).one()
    assert (job.kind, job.queue, job.priority, job.args) == ("k", "q", 0, {"n": 7})
    assert job.run_at - job.created_at == HOUR
    assert store.fire(connection, [due(connection, periodic)]) == {"a": Fate.SKIPPED}


def test_a_schedule_that_nobody_has_published_cannot_be_run(connection: sa.Connection) -> None:
    with pytest.raises(jobq.UnknownScheduleError, match="no schedule 'a'") as caught:
        jobq.run_schedule(connection, "a")

    assert caught.value.name == "a"


def test_schedules_are_listed_with_what_becomes_of_them(connection: sa.Connection) -> None:
    periodic = published(connection, "b", "a")
    step = due(connection, periodic["b"], missed=3)
    store.fire(connection, [step])
    add_worker(connection, 11, schedules=["b", "c"], lease_until=sa.text("now() + interval '1 minute'"))
    add_worker(connection, 12, schedules=["a"], lease_until=sa.text("now() - interval '1 minute'"))

    a, b = jobq.schedules(connection)

    assert (a.name, a.last_tick, a.last_fate, a.held) == ("a", None, None, False)
    assert (b.name, b.last_tick, b.last_fate, b.held) == ("b", step.step.tick, Fate.ENQUEUED, True)
    assert (b.kind, b.form, b.expression, b.explanation) == ("k", "every", "1", "every second")
    assert (b.enqueued, b.skipped, b.missed, b.timezone, b.catch_up) == (1, 0, 3, "UTC", "once")
    assert [later - now for now, later in pairwise(b.next_runs)] == [SECOND] * 4
    assert b.read_at < b.next_runs[0] <= b.read_at + SECOND


def test_the_next_runs_of_a_predicate_are_told_where_its_code_is_at_hand(connection: sa.Connection) -> None:
    app = jobq.App()
    app.when(lambda t: t.minute == 7)(app.handler("k")(lambda: None))
    store.publish(connection, app.schedules.values())

    (bare,) = jobq.schedules(connection)
    (known,) = jobq.schedules(connection, known={name: each.schedule for name, each in app.schedules.items()})

    assert bare.next_runs == ()
    assert bare.explanation.startswith("predicate ")
    assert [run.minute for run in known.next_runs] == [7] * 5


@pytest.mark.anyio
async def test_schedules_are_reached_from_async_code(connection: sa.Connection, shared_database_url: str) -> None:
    engine = create_async_engine(shared_database_url)
    async with engine.connect() as asynchronous:
        assert await jobq.schedules_async(asynchronous) == []
        with pytest.raises(jobq.UnknownScheduleError):
            await jobq.run_schedule_async(asynchronous, "a")
    await engine.dispose()


def count(connection: sa.Connection) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(jobs)).scalar_one()


@contextmanager
def autocommit(engine: sa.Engine) -> Iterator[sa.Connection]:
    with engine.connect() as connection:
        yield connection.execution_options(isolation_level="AUTOCOMMIT")
