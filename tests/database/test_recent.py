from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

import jobq
from jobq.statements.recent import recent as statement
from jobq.tables import finished_jobs, kinds

pytestmark = pytest.mark.duty("read")

WEEK, DAY, HOUR = timedelta(days=7), timedelta(days=1), timedelta(hours=1)
app = jobq.App()


@app.handler("refresh", keep=timedelta(days=30))
def refresh(company_id: int, full: bool = False) -> None: ...


@app.handler("brief")
def brief(company_id: int) -> None: ...


def ended(connection: sa.Connection, ago: timedelta = HOUR, state: str = "done", **values: Any) -> int:
    row = {"kind": "refresh", "args": {"company_id": 7}, "outcome": "ok", **values}
    return add_ended(connection, state, finished_at=NOW - ago, **row)


def test_the_newest_success_with_these_args_is_found(connection: sa.Connection) -> None:
    ended(connection, ago=3 * DAY)
    newest = ended(connection, ago=2 * DAY, outcome="ok: 12 pages")
    ended(connection, ago=HOUR, args={"company_id": 8})
    ended(connection, ago=HOUR, kind="brief")

    found = jobq.recent(connection, refresh.args(company_id=7), within=WEEK)

    assert found is not None
    assert (found.id, found.state, found.args, found.outcome) == (newest, "done", {"company_id": 7}, "ok: 12 pages")
    assert not jobq.recent(connection, refresh.args(company_id=7), within=DAY)
    assert jobq.recent(connection, refresh.args(company_id=9), within=WEEK) is None


def test_a_job_that_waits_runs_or_was_cancelled_is_not_a_success(connection: sa.Connection) -> None:
    add_job(connection, kind="refresh", args={"company_id": 7})
    add_job(connection, kind="refresh", args={"company_id": 7}, worker_id=1)
    ended(connection, state="cancelled", outcome="err: cancelled")

    for outcome in ("ok", "err", None):
        assert jobq.recent(connection, refresh.args(company_id=7), within=WEEK, outcome=outcome) is None


def test_the_outcome_asked_for_is_the_first_word(connection: sa.Connection) -> None:
    ids = {
        "ok": ended(connection, outcome=None, ago=5 * HOUR),
        "fail": ended(connection, outcome="fail: no match", ago=4 * HOUR),
        "skip": ended(connection, outcome="skip", ago=3 * HOUR),
        "err": ended(connection, state="dead", outcome="err: ValueError", ago=2 * HOUR),
    }

    def asked(outcome: Any) -> int | None:
        found = jobq.recent(connection, refresh.args(company_id=7), within=DAY, outcome=outcome)
        return found and found.id

    assert {word: asked(word) for word in ids} == ids
    assert asked(None) == ids["err"], "the newest of any"


def test_args_are_compared_as_they_were_enqueued(connection: sa.Connection) -> None:
    plain, full = ended(connection), ended(connection, args={"company_id": 7, "full": False})

    def found(args: Any) -> int | None:
        job = jobq.recent(connection, args, within=WEEK)
        return job and job.id

    assert (found(refresh.args(7)), found(refresh.args(company_id=7))) == (plain, plain)
    assert found(refresh.args(full=False, company_id=7)) == full
    assert found(refresh.args(7, full=True)) is None


@pytest.mark.parametrize(
    ("args", "within"),
    [
        pytest.param(brief.args(7), timedelta(hours=25), id="the default of a day"),
        pytest.param(refresh.args(7), timedelta(days=31), id="what the handler says"),
        pytest.param(refresh.options(keep=HOUR).args(7), timedelta(hours=2), id="what the enqueue says"),
        pytest.param(jobq.kind("refresh", queue="q").args(company_id=7), timedelta(hours=25), id="nobody says"),
    ],
)
def test_to_ask_for_longer_than_jobs_are_kept_is_refused(
    connection: sa.Connection, args: jobq.Args[...], within: timedelta
) -> None:
    with pytest.raises(ValueError, match=r"within: .* jobs are kept when done .* keep="):
        jobq.recent(connection, args, within=within)


def test_a_kind_without_its_handler_is_kept_as_its_worker_has_published(connection: sa.Connection) -> None:
    job = ended(connection, ago=3 * DAY)
    connection.execute(sa.insert(kinds).values(kind="refresh", queue="q", max_attempts=5, keep=WEEK))
    bare = jobq.kind("refresh", queue="q")

    found = jobq.recent(connection, bare.args(company_id=7), within=WEEK)

    assert found is not None
    assert found.id == job
    with pytest.raises(jobq.OptionError, match="within"):
        jobq.recent(connection, bare.args(company_id=7), within=8 * DAY)


def test_dead_jobs_are_kept_for_a_week_at_least(connection: sa.Connection) -> None:
    assert jobq.recent(connection, brief.args(7), within=WEEK, outcome="err") is None
    with pytest.raises(jobq.OptionError, match="kept when dead"):
        jobq.recent(connection, brief.args(7), within=8 * DAY, outcome="err")


@pytest.mark.parametrize(
    ("args", "options", "said"),
    [
        pytest.param({"company_id": 7}, {"within": DAY}, r"expected handler\.args", id="a dict"),
        pytest.param(refresh, {"within": DAY}, r"expected handler\.args", id="the handler itself"),
        pytest.param(refresh.args(7), {"within": 7}, "within", id="a number"),
        pytest.param(refresh.args(7), {"within": -DAY}, "within", id="negative"),
        pytest.param(refresh.args(7), {"within": DAY, "outcome": "done"}, "outcome: 'ok' or", id="a state"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_any_sql(
    session: Session, sent: list[str], args: Any, options: Any, said: str
) -> None:
    with pytest.raises(jobq.JobqError, match=said):
        jobq.recent(session, args, **options)

    assert sent == []


def test_a_session_will_do_and_stays_usable(session: Session) -> None:
    ended(session.connection())

    assert jobq.recent(session, refresh.args(7), within=WEEK)
    with pytest.raises(jobq.OptionError):
        jobq.recent(session, brief.args(7), within=WEEK)
    assert session.scalar(sa.text("SELECT 1")) == 1


@pytest.mark.anyio
async def test_the_async_twin_finds_the_same(engine: sa.Engine, database_url: str) -> None:
    with engine.begin() as connection:
        job = ended(connection)
    other = create_async_engine(database_url)
    async with other.connect() as there:
        found = await jobq.recent_async(there, refresh.args(7), within=WEEK)
        with pytest.raises(jobq.OptionError, match="within"):
            jobq.recent_async(there, brief.args(7), within=WEEK)
    await other.dispose()

    assert found is not None
    assert found.id == job


def test_it_is_one_look_at_the_index_of_kind_and_args(connection: sa.Connection) -> None:
    connection.execute(
        sa.insert(finished_jobs).from_select(
            [column.name for column in finished_jobs.c],
            sa.text("""
                SELECT -n, 'q', 'refresh', jsonb_build_object('company_id', n % 2000), 1, at, 1, 0, NULL::int,
                       NULL::text, NULL::bigint, at, at, NULL::text, '{}'::jsonb, '[]'::jsonb, 'done', 'ok', at, at,
                       NULL::jsonb
                FROM (SELECT n, now() - n * interval '1 s' AS at FROM generate_series(1, 20000) n) AS old
            """).columns(*[sa.column(column.name) for column in finished_jobs.c]),
            include_defaults=False,
        )
    )
    connection.exec_driver_sql("ANALYZE jobq.finished_jobs")
    compiled = statement().compile(dialect=connection.dialect)
    binds = {"kind": "refresh", "args": '{"company_id": 7}', "within": 3600.0, "word": "ok"}

    rows = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, BUFFERS, COSTS off) {compiled}", {**compiled.params, **binds})
    plan = "\n".join(rows.scalars())

    assert re.search(r"Index Scan (Backward )?(using|on) finished_jobs_recent", plan)
    assert "Seq Scan" not in plan
    assert jobq.recent(connection, refresh.args(7), within=WEEK)
