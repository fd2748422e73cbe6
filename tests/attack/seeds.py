"""Faults to be planted into a worker's process, which an attack has to find. Nothing of the product knows of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import psycopg
import sqlalchemy as sa

import jobq
from jobq.model import State
from jobq.statements import claim, lease, slot_claims
from jobq.store import claiming, ending, leasing, rescuing, scheduling
from jobq.worker.lease import Lease
from jobq.worker.server_clock import ServerClock

GONE = "DELETE FROM jobq.workers WHERE lease_until < now() RETURNING id"
TAKE_BACK = """
UPDATE jobq.jobs SET worker_id = NULL, failures = failures + 1,
       errors = errors || jsonb_build_object('error', 'WorkerLost', 'attempt', attempt)
 WHERE worker_id"""
ONE_STATEMENT = f"WITH lost AS ({GONE}) {TAKE_BACK} IN (SELECT id FROM lost)"  # noqa: S608
LONG_OVER = "SELECT EXISTS (SELECT FROM jobq.workers WHERE lease_until < now() - interval '5 s')"
TAKE = """
UPDATE jobq.jobs SET worker_id = NULL
 WHERE id = (SELECT j.id FROM jobq.jobs j JOIN jobq.workers w ON w.id = worker_id WHERE lease_until > now()
              ORDER BY attempted_at DESC LIMIT 1 FOR UPDATE OF j SKIP LOCKED)
"""
MOVE_BACK = "UPDATE jobq.schedules SET last_tick = least(last_tick, %s) WHERE name = %s"
END = """
WITH gone AS (DELETE FROM jobq.jobs WHERE id = %s RETURNING *)
INSERT INTO jobq.finished_jobs (id, queue, kind, args, priority, run_at, attempt, failures, max_attempts, unique_key,
       worker_id, attempted_at, created_at, callsite, meta, errors, state, outcome, finished_at, expires_at)
SELECT gone.*, 'done', %s::text, now(), now() + interval '1 hour' FROM gone RETURNING id
"""


def plant(seed: str) -> None:
    """The faults that are asked for, by commas."""
    for name in filter(None, seed.split(",")):
        SEEDS[name]()


def end_now(url: str) -> None:
    """Completion before the effect's commit."""
    job = jobq.current().job
    with psycopg.connect(url) as connection:
        connection.execute(END, [job.id, f"ok: {job.attempt}"])


def mark_points(reach: Callable[[str], None], at_work: Callable[[str], None]) -> None:
    """Points inside of the worker; `at_work` counts once a job has begun."""
    leasing.beat = _then(leasing.beat, lambda alive: at_work("after a beat"))
    rescuing.rescue = _then(rescuing.rescue, lambda rescue: rescue.jobs and reach("inside a rescue"))


def _then(function: Callable[..., Any], act: Callable[[Any], object]) -> Any:
    @wraps(function)
    def both(*args: Any, **kwargs: Any) -> Any:
        answer = function(*args, **kwargs)
        act(answer)
        return answer

    return both


def _no_fence() -> None:
    """Ends are written by the job's id alone."""

    def finish_done(connection: sa.Connection, ids: Any, _attempts: Any, _places: Any, outcomes: Any, **_: Any) -> Any:
        return {each for id_, text in zip(ids, outcomes, strict=True) for each in _end(connection, id_, text)}

    def finish(connection: sa.Connection, endings: Any) -> set[int]:
        return {id_ for each in endings for id_ in _end(connection, each.fence.id, each.outcome)}

    ending.finish_done = finish_done
    ending.finish = finish


def _end(connection: sa.Connection, id_: int, outcome: str | None) -> list[int]:
    return list(connection.exec_driver_sql(END, (id_, outcome)).scalars())


def _one_statement_rescue() -> None:
    def rescue(connection: sa.Connection, **_: Any) -> rescuing.Rescue:
        connection.exec_driver_sql(ONE_STATEMENT)
        return rescuing.Rescue()

    rescuing.rescue = rescue


def _no_reconcile() -> None:
    leasing.reconcile = lambda *_, **__: []


def _rescue_waits_for_locks() -> None:
    """Without SKIP LOCKED."""
    usual = sa.Select.with_for_update
    sa.Select.with_for_update = lambda self, **_: usual(self)
    for statement in (lease.take_back, lease.delete_lost_workers):
        statement.cache_clear()
        statement()
    sa.Select.with_for_update = usual


def _rescue_without_end() -> None:
    """Whatever max_attempts says."""
    rescuing._is_dead = lambda row: False
    rescuing._bury = lambda *_: None


def _late_rescue() -> None:
    """Five seconds after the lease is over."""
    usual = rescuing.rescue

    def rescue(connection: sa.Connection, **options: Any) -> rescuing.Rescue:
        is_time = connection.exec_driver_sql(LONG_OVER).scalar_one()
        return usual(connection, **options) if is_time else rescuing.Rescue()

    rescuing.rescue = rescue


def _rescue_in_pieces() -> None:
    """Workers are declared dead in a transaction of its own, before their jobs are taken back."""

    def rescue(connection: sa.Connection, **_: Any) -> rescuing.Rescue:
        with psycopg.connect(os.environ["CHAOS_LEDGER_URL"]) as own:
            gone = [id_ for (id_,) in own.execute(GONE)]
        rows = connection.exec_driver_sql(f"{TAKE_BACK} = ANY(%s) RETURNING id, kind, attempt", (gone,)).all()
        return rescuing.Rescue(tuple(rescuing.Rescued(*row, state=State.PENDING) for row in rows))

    rescuing.rescue = rescue


def _taken_from_the_living() -> None:
    """With each rescue a job of a worker whose lease is not over."""
    usual = rescuing.rescue

    def rescue(connection: sa.Connection, **options: Any) -> rescuing.Rescue:
        connection.exec_driver_sql(TAKE)
        return usual(connection, **options)

    rescuing.rescue = rescue


def _slots_freed() -> None:
    """Whoever looks for a slot takes all of them for free."""
    usual = claiming.claim_slots

    def claim_slots(connection: sa.Connection, *args: Any, **options: Any) -> Any:
        connection.exec_driver_sql("UPDATE jobq.slots SET worker_id = NULL, job_id = NULL, attempt = NULL")
        return usual(connection, *args, **options)

    claiming.claim_slots = claim_slots


def _keys_freed() -> None:
    """A job has its unique key until it is claimed."""
    usual = claiming.claim

    def claim(connection: sa.Connection, *args: Any, **options: Any) -> Any:
        claimed = usual(connection, *args, **options)
        ids = [job.id for job in claimed.jobs]
        connection.exec_driver_sql("UPDATE jobq.jobs SET unique_key = NULL WHERE id = ANY(%s)", (ids,))
        return claimed

    claiming.claim = claim


def _last_in_first_out() -> None:
    """FIFO queues are served from their end."""
    usual = sa.Select.order_by
    sa.Select.order_by = lambda self, *columns: usual(self, *[column.desc() for column in columns])
    slot_claims.claim_in_order.cache_clear()
    slot_claims.claim_in_order()
    sa.Select.order_by = usual


def _ticks_again() -> None:
    """A step is taken once more a little later, whoever has settled it."""
    usual = scheduling.fire

    def fire(connection: sa.Connection, due: Any) -> Any:
        usual(connection, due)
        connection.exec_driver_sql("SELECT pg_sleep(0.3)")
        for each in due:
            connection.exec_driver_sql(MOVE_BACK, (each.seen, each.periodic.name))
        return usual(connection, due)

    scheduling.fire = fire


def _due_by_own_clock() -> None:
    """By the clock of the worker's machine."""
    now = sa.bindparam("own_now", callable_=time.time, type_=sa.Double)
    claim.is_due = lambda table: (table.c.run_at <= sa.func.to_timestamp(now), table.c.worker_id.is_(None))
    claim.claim.cache_clear()


def _lease_by_wall_clock() -> None:
    Lease.__init__.__defaults__ = (time.time,)


def _trust_in_the_servers_clock() -> None:
    """A lease is over when the server says so."""
    ServerClock.was_set_forward = lambda *_, **__: None


SEEDS: dict[str, Callable[[], None]] = {
    "no_fence": _no_fence,
    "one_statement_rescue": _one_statement_rescue,
    "no_reconcile": _no_reconcile,
    "rescue_waits_for_locks": _rescue_waits_for_locks,
    "rescue_without_end": _rescue_without_end,
    "rescue_in_pieces": _rescue_in_pieces,
    "late_rescue": _late_rescue,
    "taken_from_the_living": _taken_from_the_living,
    "due_by_own_clock": _due_by_own_clock,
    "lease_by_wall_clock": _lease_by_wall_clock,
    "trust_in_the_servers_clock": _trust_in_the_servers_clock,
    "keys_freed": _keys_freed,
    "slots_freed": _slots_freed,
    "last_in_first_out": _last_in_first_out,
    "ticks_again": _ticks_again,
    "early_end": lambda: None,  # the application asks for it by itself
}
