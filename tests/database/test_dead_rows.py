"""Claims among rows that they cannot use: dead ones that cannot be cleaned away, and crowds of other kinds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import sqlalchemy as sa

import jobq
from jobq.model import State
from jobq.statements import claim as statements
from jobq.store import claiming, ending
from jobq.store.ending import Ending, Fence
from jobq.tables import workers
from jobq.worker.lanes import Lanes

ME = 1
ROUNDS = 40
BATCH = 500
CROWD = """
    INSERT INTO jobq.jobs (queue, kind, args, run_at)
    SELECT 'default', 'odd', '{}', now() - interval '1 hour' + n * interval '1 ms' FROM generate_series(1, 20000) n
"""


def test_f63_a_claim_reads_no_more_pages_after_twenty_thousand_jobs_behind_an_open_snapshot(engine: sa.Engine) -> None:
    lanes = Lanes()
    lanes.serve({"default": 1})
    with engine.connect() as snapshot, engine.connect() as connection:
        join(connection)
        hold_open(snapshot)
        through(connection, lanes)
        at_first = pages_of_a_claim(connection, lanes)
        for _ in range(ROUNDS):
            through(connection, lanes)
        at_last = pages_of_a_claim(connection, lanes)

        assert size_of_jobs(connection) > ROUNDS * BATCH * 200  # nothing could be cleaned away, and no job is left
        assert at_last < 10 * at_first


def test_a10_a_crowd_of_another_kind_is_walked_through_once(engine: sa.Engine) -> None:
    lanes = Lanes()
    lanes.serve({"default": 1})
    with engine.connect() as connection:
        join(connection)
        connection.exec_driver_sql(CROWD)
        connection.commit()
        at_first = pages_of_a_claim(connection, lanes)
        through(connection, lanes)
        at_last = pages_of_a_claim(connection, lanes)

    assert at_first > 20 * at_last


def join(connection: sa.Connection) -> None:
    hour = timedelta(hours=1)
    row = {"id": ME, "name": "w", "lease": hour, "lease_until": sa.func.now() + hour}
    connection.execute(sa.insert(workers).values(row))
    connection.commit()


def hold_open(snapshot: sa.Connection) -> None:
    snapshot.execution_options(isolation_level="REPEATABLE READ")
    snapshot.execute(sa.text("SELECT count(*) FROM jobq.jobs"))


def through(connection: sa.Connection, lanes: Lanes) -> None:
    """A batch of jobs, from the enqueue to the end, as a worker takes them."""
    jobq.enqueue_many(connection, jobq.kind("k", queue="default"), [{"n": n} for n in range(BATCH)])
    connection.commit()
    asked = lanes.ask(BATCH)
    claim = claiming.claim(connection, asked, worker_id=ME, kinds=["k"], most=BATCH)
    lanes.absorb(asked, claim, room=BATCH)
    connection.commit()
    assert len(claim.jobs) == BATCH
    ends = [Ending(Fence(job.id, job.attempt, ME), State.DONE, keep=timedelta(days=1)) for job in claim.jobs]
    assert len(ending.finish(connection, ends)) == BATCH
    connection.commit()


def pages_of_a_claim(connection: sa.Connection, lanes: Lanes) -> int:
    """How many pages a claim of the next job touches, by EXPLAIN; nothing is kept of it."""
    jobq.enqueue(connection, jobq.kind("k", queue="default"), n=0)
    asked = lanes.ask(1)
    binds = {
        "worker_id": ME,
        "kinds": ["k"],
        "n": 1,
        "queues": [lane.queue for lane in asked],
        "priorities": [lane.priority for lane in asked],
        "run_ats": [lane.run_at for lane in asked],
        "ids": [lane.id for lane in asked],
        "limits": [lane.limit for lane in asked],
    }
    statement: Any = statements.claim()
    compiled = statement.compile(dialect=connection.dialect)
    connection.exec_driver_sql("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
    plan = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {compiled}", binds).scalar_one()[0]
    connection.rollback()
    return int(plan["Plan"]["Shared Hit Blocks"]) + int(plan["Plan"]["Shared Read Blocks"])


def size_of_jobs(connection: sa.Connection) -> int:
    return int(connection.exec_driver_sql("SELECT pg_relation_size('jobq.jobs')").scalar_one())
