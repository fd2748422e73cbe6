"""The plans of what runs all day, on databases that a planner knows nothing, or something wrong, of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from plan_cases import CASES, WITH_PREDICATES, Case, Taken, beat, claim, complete, complete_done, put_back, sweep
from plan_rows import analyse, fill
from plans import Plan, explained
from psycopg import sql
from store_rows import ME

import jobq
from jobq.embedded.locks import exclusive
from jobq.statements.claim import place_of
from jobq.tables import jobs

FINISHED = 1_000_000  # and half as many scheduled
UNSEEN = 50_000  # the same, where nobody has analysed since there were none
BATCH = 500
DATABASES = {"never_analysed": UNSEEN, "analysed_while_idle": UNSEEN, "analysed": FINISHED, "few": 5_000}
MODES = ("force_generic_plan", "force_custom_plan")
NEVER_DEARER = {claim, sweep, complete_done, complete, put_back, beat}
BY_LANE = ["claim", "sweep", "claim_head", "claim_some", "survey", "stats"]
BY_ID = ["complete", "complete_one", "put_back", "give_back", "beat", "get", "list_newest"]
CROWD = """
    INSERT INTO jobq.jobs (queue, kind, run_at)
    SELECT 'q7', '{}', now() - interval '1 day' + n * 7919 % 5000 * interval '1 s' FROM generate_series(1, 5000) n
"""
ENDED = ["get", "list_newest"]
SEEDED = [
    pytest.param("DROP INDEX jobq.jobs_lane", BY_LANE, id="jobs_lane"),
    pytest.param("ALTER TABLE jobq.jobs DROP CONSTRAINT jobs_pkey", BY_ID, id="jobs_pkey"),
    pytest.param("DROP INDEX jobq.finished_jobs_dead", ["stats"], id="finished_jobs_dead"),
    pytest.param("DROP INDEX jobq.finished_jobs_finished", ["stats"], id="finished_jobs_finished"),
    pytest.param("DROP INDEX jobq.finished_jobs_recent", ["recent"], id="finished_jobs_recent"),
    pytest.param("ALTER TABLE jobq.finished_jobs DROP CONSTRAINT finished_jobs_pkey", ENDED, id="finished_jobs_pkey"),
]


def name_of(case: Case) -> str:
    return case.run.__name__


PAIRS = [
    pytest.param(name, case, id=f"{name_of(case)}-{name}")
    for name in ("never_analysed", "analysed_while_idle", "analysed")
    for case in (CASES + WITH_PREDICATES if name == "analysed" else CASES)
]


@pytest.fixture(scope="session")
def engines(server_url: str, admin: psycopg.Connection, template: str) -> Iterator[dict[str, sa.Engine]]:
    """The databases by name; each is made once for all processes of a run, and whoever uses it rolls back."""
    with exclusive(_lock("plans")):
        found = {name: _engine(server_url, admin, template, name) for name in DATABASES}
    yield found
    for engine in found.values():
        engine.dispose()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "case"), PAIRS)
def test_the_big_tables_are_read_by_the_right_index_and_few_pages_a_job(
    engines: dict[str, sa.Engine], name: str, case: Case, mode: str
) -> None:
    outcomes = [executed(engines[name], case, mode)]
    if pages_a_job(outcomes[0]) > case.pages:
        outcomes.append(executed(engines[name], case, mode))  # a page was split, or the table made longer

    assert [fault for _, plans in outcomes for fault in faults(plans, case)] == []
    assert pages_a_job(outcomes[-1]) <= case.pages


@pytest.mark.parametrize("case", [case for case in CASES if case.run in NEVER_DEARER], ids=name_of)
def test_a_job_costs_no_more_pages_in_large_tables_than_in_small_ones(
    engines: dict[str, sa.Engine], case: Case
) -> None:
    few, many = (
        min(pages_a_job(executed(engines[name], case, "force_custom_plan")) for _ in range(2))
        for name in ("never_analysed", "analysed")
    )

    assert many <= 1.3 * few  # an index may be one level higher


@pytest.mark.parametrize(("dropped", "names"), SEEDED)
def test_without_the_index_each_of_these_would_be_seen(
    engines: dict[str, sa.Engine], dropped: str, names: list[str]
) -> None:
    cases = [case for case in CASES if name_of(case) in names]
    before, after = (
        [name_of(case) for case in cases if faults(executed(engines["few"], case, MODES[0], *seeds)[1], case)]
        for seeds in ([], [dropped])
    )

    assert (before, after) == ([], names)


def test_a_sort_of_the_backlog_would_be_seen(engines: dict[str, sa.Engine]) -> None:
    (case,) = (case for case in CASES if case.run is claim)

    _, plans = executed(engines["few"], case, MODES[0], CROWD.format("k7"), "DROP INDEX jobq.jobs_lane")

    assert any(fault.startswith("sort of") for fault in faults(plans, case))


def test_a_walk_through_what_a_claim_cannot_take_would_be_seen(engines: dict[str, sa.Engine]) -> None:
    (case,) = (case for case in CASES if case.run is claim)

    assert pages_a_job(executed(engines["few"], case, MODES[0], CROWD.format("odd"))) > 2 * case.pages


@pytest.mark.parametrize("value", ["on", "off"])
def test_stats_leave_the_callers_transaction_as_it_was(connection: sa.Connection, value: str) -> None:
    connection.exec_driver_sql(f"SET LOCAL enable_seqscan = '{value}'")

    jobq.stats(connection)

    assert connection.exec_driver_sql("SHOW enable_seqscan").scalar_one() == value


def pages_a_job(outcome: tuple[int, list[Plan]]) -> float:
    number, plans = outcome
    assert number > 0
    return sum(plan.pages for plan in plans) / number


def faults(plans: list[Plan], case: Case) -> list[str]:
    """What is wrong with the plans of a case."""
    wrong = [scan for plan in plans for scan in sorted(plan.scans - case.scans)]
    return wrong + [f"sort of {plan.sorted} rows" for plan in plans if plan.sorted > case.most_sorted]


def executed(engine: sa.Engine, case: Case, mode: str, *seeds: str) -> tuple[int, list[Plan]]:
    """What the case returned, and its plans, as a prepared statement gets them; rolled back."""
    with exclusive(_lock(f"{engine.url.database}")), engine.connect() as connection:  # one locks what others skip
        held = _held(connection)
        for seed in seeds:
            connection.exec_driver_sql(seed, execution_options={"no_parameters": True})  # % is %
        for setting, value in {**case.settings, "plan_cache_mode": mode}.items():
            connection.exec_driver_sql(f"SET LOCAL {setting} = '{value}'")
        with explained(connection) as plans:
            number = case.run(connection, held)
        connection.rollback()
    return number, plans


def _lock(name: str) -> Path:
    return Path(os.environ["JOBQ_TEST_DIRECTORY"], f"{name}.lock")


def _held(connection: sa.Connection) -> list[Taken]:
    columns = jobs.c.id, jobs.c.attempt, jobs.c.worker_id, sa.cast(place_of("jobs"), sa.Text)
    mine = sa.select(*columns).where(jobs.c.worker_id == ME).order_by(jobs.c.id).limit(BATCH)
    return [Taken(*row) for row in connection.execute(mine)]


def _engine(server_url: str, admin: psycopg.Connection, template: str, name: str) -> sa.Engine:
    database = f"plans_{name}"
    url = sa.make_url(server_url).set(database=database)
    engine = sa.create_engine(url, connect_args={"prepare_threshold": 0})  # prepared at once, as it soon is anyway
    if admin.execute("SELECT FROM pg_database WHERE datname = %s", [database]).fetchone() is None:
        names = sql.Identifier(database), sql.Identifier(template)
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(*names))
        _fill(engine, name)
    return engine


def _fill(engine: sa.Engine, name: str) -> None:
    number = DATABASES[name]
    with engine.begin() as connection:
        if name == "analysed_while_idle":
            analyse(connection)
        fill(connection, finished=number, future=number // 2)
    if name == "analysed":
        with engine.begin() as connection:
            analyse(connection)
