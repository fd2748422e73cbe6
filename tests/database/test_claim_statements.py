"""The claim: which jobs, how many, in which order, and what two at once do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job, add_worker
from store_rows import ME, OTHER, claim_from, ids_of, in_thread, lane, row, running_on

from jobq.database import use_settings
from jobq.store.claiming import survey
from jobq.tables import finished_jobs, jobs, queues, workers

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def me(connection: sa.Connection) -> int:
    return add_worker(connection, ME)


def test_a_due_job_is_claimed_and_becomes_the_workers(connection: sa.Connection) -> None:
    id_ = add_job(connection, args={"to": "a@b.c"}, attempt=3, failures=1, max_attempts=4, meta={"timeout": 5})
    before = row(connection, id_)

    claim = claim_from(connection)

    now = connection.execute(sa.select(NOW)).scalar_one()
    assert row(connection, id_) == {**before, "state": "running", "worker_id": ME, "attempt": 4, "attempted_at": now}
    (job,) = claim.jobs
    assert (job.id, job.attempt, job.failures, job.max_attempts, job.worker_id) == (id_, 4, 1, 4, ME)
    assert (job.args, job.meta) == ('{"to": "a@b.c"}', '{"timeout": 5}')
    assert (job.queue, job.kind, job.priority, job.run_at) == ("default", "email.send", 1, before["run_at"])
    assert claim.now == now


def test_a_claim_of_nothing_still_tells_the_time(connection: sa.Connection) -> None:
    claim = claim_from(connection)

    assert claim.jobs == ()
    assert claim.now == connection.execute(sa.select(NOW)).scalar_one()


NOT_TO_CLAIM: dict[str, dict[str, Any]] = {
    "scheduled": {"run_at": NOW + SECOND},
    "running here": {"worker_id": ME},
    "running elsewhere": {"worker_id": OTHER},
    "of another kind": {"kind": "image.scale"},
    "of another queue": {"queue": "other"},
    "of another priority": {"priority": 2},
    "out of attempts": {"failures": 5, "max_attempts": 5},
    "past its attempts": {"failures": 9, "max_attempts": 5},
}


@pytest.mark.parametrize("values", NOT_TO_CLAIM.values(), ids=NOT_TO_CLAIM)
def test_what_is_not_to_be_claimed_is_left_alone(connection: sa.Connection, values: dict[str, Any]) -> None:
    id_ = add_job(connection, **values)
    before = row(connection, id_)

    assert claim_from(connection).jobs == ()
    assert row(connection, id_) == before


@pytest.mark.parametrize(
    ("failures", "most"), [(0, 1), (4, 5), (5_000, 10_000), (5, None), (32_000, None), (40_000, 50_000)]
)
def test_f13_a_job_with_an_attempt_left_is_claimed(connection: sa.Connection, failures: int, most: int | None) -> None:
    id_ = add_job(connection, failures=failures, max_attempts=most)

    assert ids_of(claim_from(connection)) == [id_]


def test_f20_jobs_come_by_priority_run_at_and_id_whatever_their_queues(connection: sa.Connection) -> None:
    late, early = (add_job(connection, run_at=NOW - n * SECOND) for n in (1, 9))
    same = [add_job(connection, run_at=NOW - 5 * SECOND) for _ in range(3)]
    urgent = add_job(connection, priority=0)
    other = add_job(connection, queue="other", run_at=NOW - HOUR)

    claim = claim_from(connection, lane(priority=0), lane(), lane("other"))

    assert ids_of(claim) == [urgent, other, early, *same, late]


def test_f20_of_more_than_are_asked_for_the_earliest_are_claimed(connection: sa.Connection) -> None:
    ids = [add_job(connection, run_at=NOW - n * SECOND) for n in range(9)]

    assert ids_of(claim_from(connection, lane(limit=2))) == [ids[8], ids[7]]
    assert ids_of(claim_from(connection, most=2)) == [ids[6], ids[5]]


def test_a_claim_takes_no_more_than_asked_for_in_all_and_of_each_lane(connection: sa.Connection) -> None:
    first = [add_job(connection, queue="a") for _ in range(5)]
    second = [add_job(connection, queue="b") for _ in range(5)]

    claim = claim_from(connection, lane("a", limit=2), lane("b", limit=9), most=4)

    assert ids_of(claim) == [*first[:2], *second[:2]]


def test_f22_a_flood_in_one_lane_cannot_take_the_room_that_its_limit_leaves_to_another(
    connection: sa.Connection,
) -> None:
    for _ in range(50):
        add_job(connection, priority=0)
    ordinary = add_job(connection)

    assert ordinary in ids_of(claim_from(connection, lane(priority=0, limit=9), lane(limit=10), most=10))


def test_only_kinds_that_the_worker_knows_are_claimed(connection: sa.Connection) -> None:
    ids = {kind: add_job(connection, kind=kind) for kind in ("a", "b", "c")}

    assert ids_of(claim_from(connection, kinds=["a", "c"])) == [ids["a"], ids["c"]]
    assert ids_of(claim_from(connection, kinds=[])) == []
    assert ids_of(claim_from(connection, kinds=["b"])) == [ids["b"]]


@pytest.mark.parametrize(
    ("paused_until", "is_claimed"), [(NOW + SECOND, False), (NOW, True), (NOW - SECOND, True), (None, True)],
    ids=["paused", "just over", "over", "never"],
)  # fmt: skip
def test_a_paused_queue_stands_still_and_the_others_do_not(
    connection: sa.Connection, paused_until: Any, is_claimed: bool
) -> None:
    connection.execute(sa.insert(queues).values(name="paused", paused_until=paused_until))
    paused, other = add_job(connection, queue="paused"), add_job(connection, queue="other")

    claimed = ids_of(claim_from(connection, lane("paused"), lane("other")))

    assert claimed == ([paused, other] if is_claimed else [other])


def test_a_worker_that_was_declared_dead_claims_nothing(connection: sa.Connection) -> None:
    id_ = add_job(connection)
    connection.execute(sa.delete(workers).where(workers.c.id == ME))
    before = row(connection, id_)

    claim = claim_from(connection)

    assert claim.jobs == ()
    assert claim.now is not None
    assert row(connection, id_) == before


def test_a_worker_whose_lease_ran_out_may_claim_until_it_is_declared_dead(connection: sa.Connection) -> None:
    connection.execute(sa.update(workers).values(lease_until=NOW - HOUR))
    id_ = add_job(connection)

    assert ids_of(claim_from(connection)) == [id_]


def test_the_cursor_passes_by_what_is_before_it_and_at_it(connection: sa.Connection) -> None:
    at = connection.execute(sa.select(NOW - SECOND)).scalar_one()
    before = add_job(connection, run_at=at - SECOND)
    same = [add_job(connection, run_at=at) for _ in range(4)]
    after = add_job(connection, run_at=at + timedelta(microseconds=1))

    claim = claim_from(connection, lane(after=(at, same[1])))

    assert ids_of(claim) == [*same[2:], after]
    assert row(connection, before)["state"] == "pending"
    assert ids_of(claim_from(connection)) == [before, *same[:2]]


def test_among_jobs_of_one_moment_claims_go_on_by_their_ids(connection: sa.Connection) -> None:
    ids = [add_job(connection) for _ in range(7)]
    seen: list[int] = []
    cursor = None

    while jobs_ := claim_from(connection, lane(limit=3, after=cursor), most=3).jobs:
        cursor = jobs_[-1].run_at, jobs_[-1].id
        seen += [job.id for job in jobs_]

    assert seen == ids


SETTINGS = {
    "as the server has them": [],
    "f19": ["hashjoin", "mergejoin", "hashagg", "sort", "material"],
    "as the worker has them": ["seqscan", "bitmapscan"],
    "no index": ["indexscan", "indexonlyscan", "bitmapscan"],
    "no nested loop": ["nestloop"],
}


@pytest.mark.parametrize("off", SETTINGS.values(), ids=SETTINGS)
def test_f19_a_claim_takes_its_limit_whatever_the_planner_does(connection: sa.Connection, off: list[str]) -> None:
    rows = [{"queue": "default", "kind": "email.send"} for _ in range(2_000)]
    connection.execute(sa.insert(jobs), rows)
    connection.execute(sa.update(jobs).values(run_at=NOW - jobs.c.id * timedelta(milliseconds=1)))
    for name in off:
        connection.execute(sa.select(sa.func.set_config(f"enable_{name}", "off", True)))

    claim = claim_from(connection, most=10)

    assert len(claim.jobs) == 10
    assert running_on(connection, ME) == sorted(ids_of(claim))
    assert [job.run_at for job in claim.jobs] == sorted(job.run_at for job in claim.jobs)


def updates(connection: sa.Connection) -> tuple[int, int]:
    """How many rows of jobs this session has updated, and how many of them without touching an index."""
    counts = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relid = 'jobq.jobs'::regclass"
    updated, hot = connection.execute(sa.text(counts)).one()
    return updated, hot


def test_a_claim_is_a_hot_update_which_touches_no_index(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_worker(connection, ME)
        connection.execute(sa.insert(jobs), [{"queue": "default", "kind": "email.send"} for _ in range(500)])
        before = updates(connection)

        claim_from(connection, lane(limit=500), most=500)

        updated, hot = (after - was for after, was in zip(updates(connection), before, strict=True))
    assert updated == 500
    assert hot >= 0.8 * updated  # fillfactor 50; at 100 it is one in twenty


def test_args_that_python_cannot_parse_do_not_break_the_claim_of_the_others(connection: sa.Connection) -> None:
    huge = sa.cast(sa.cast('{"n": ' + "9" * 5_000 + "}", sa.Text), jobs.c.args.type)
    ids = [add_job(connection, args=args) for args in (huge, {"n": 1})]

    claim = claim_from(connection)

    assert ids_of(claim) == ids
    assert len(claim.jobs[0].args) > 5_000


def test_waiting_counts_from_the_later_of_run_at_and_created_at(connection: sa.Connection) -> None:
    add_job(connection, run_at=NOW - HOUR, created_at=NOW - 9 * SECOND)
    add_job(connection, run_at=NOW - 5 * SECOND, created_at=NOW - HOUR)

    claim = claim_from(connection)

    assert [job.waited for job in claim.jobs] == [9 * SECOND, 5 * SECOND]


def test_two_claims_at_once_get_different_jobs(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        for worker_id in (ME, OTHER):
            add_worker(connection, worker_id)
        ids = [add_job(connection) for _ in range(10)]

    with engine.begin() as one, engine.begin() as two:
        first = ids_of(claim_from(one, most=4))
        second = ids_of(claim_from(two, most=4, worker_id=OTHER))
        third = ids_of(claim_from(one, most=4))

    assert (first, second, third) == (ids[:4], ids[4:8], ids[8:])


def test_what_another_holds_locked_is_passed_by_and_claimed_later(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_worker(connection, ME)
        held, free = add_job(connection), add_job(connection)

    with engine.begin() as operator, engine.begin() as claimer:
        operator.execute(sa.select(jobs.c.id).where(jobs.c.id == held).with_for_update())
        assert ids_of(claim_from(claimer)) == [free]

    with engine.begin() as claimer:
        assert ids_of(claim_from(claimer)) == [held]


def test_f23_a_claim_on_the_workers_own_connection_is_read_committed_goes_by_the_index_and_is_not_compiled(
    database_url: str, engine: sa.Engine
) -> None:
    own = sa.create_engine(database_url, isolation_level="READ COMMITTED")
    use_settings(own)
    with engine.begin() as connection:
        add_worker(connection, ME)
        id_ = add_job(connection)

    with own.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        names = ("enable_seqscan", "jit", "transaction_isolation")
        settings = [connection.scalar(sa.text(f"SHOW {name}")) for name in names]
        assert ids_of(claim_from(connection)) == [id_]
    own.dispose()

    assert settings == ["off", "off", "read committed"]


def test_a_survey_tells_what_there_is_to_serve(connection: sa.Connection) -> None:
    for queue in ("b", "a", "b", "c", "tenant-7"):
        add_job(connection, queue=queue, run_at=NOW + HOUR)
    add_ended(connection, "done", queue="only ended")
    connection.execute(sa.insert(queues), [{"name": "b", "weight": 5}, {"name": "unused", "weight": 2}])
    add_worker(connection, OTHER, lease_until=NOW - SECOND)

    found = survey(connection)

    assert found.queues == {"a", "b", "c", "tenant-7"}
    assert found.weights == {"b": 5, "unused": 2}
    assert found.live_workers == 1


def test_a_survey_of_an_empty_database_finds_nothing(connection: sa.Connection) -> None:
    connection.execute(sa.delete(workers))

    found = survey(connection)

    assert (found.queues, found.settings, found.live_workers) == (frozenset(), (), 0)
    assert connection.scalar(sa.select(sa.func.count()).select_from(finished_jobs)) == 0


def test_a_job_that_is_written_while_a_claim_has_begun_is_left_whole_for_the_next(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_worker(connection, ME)
        written, other = add_job(connection), add_job(connection)
    with engine.connect() as holding:
        holding.execute(sa.select(workers.c.id).where(workers.c.id == ME).with_for_update())
        with in_thread(engine, claim_from) as first:  # it has its snapshot, and waits for the worker's row
            with engine.begin() as connection:
                connection.execute(sa.update(jobs).where(jobs.c.id == written).values(meta={"timeout": 5}))
            holding.rollback()
    with engine.begin() as connection:
        second = claim_from(connection)

    assert sorted(ids_of(first.result()) + ids_of(second)) == [written, other]
    assert {job.attempt for job in (*first.result().jobs, *second.jobs)} == {1}
