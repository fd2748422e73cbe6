"""Where the tables and the reference differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from reference import QUEUES, Reference, Row, Slot

LOOK = """SELECT id, (args ->> 'number')::int, kind, queue, priority, state, attempt, failures,
  jsonb_array_length(errors), unique_key, worker_id, max_attempts,
  round(extract(epoch FROM run_at - now()) / 3600)::int, round(extract(epoch FROM expires_at - now()) / 3600)::int
FROM jobq.all_jobs ORDER BY id"""
LOOK_AT_SLOTS = """SELECT queue, n, job_id, attempt, worker_id,
  CASE WHEN ready_at > now() THEN round(extract(epoch FROM ready_at - now()) / 3600)::int END
FROM jobq.slots ORDER BY queue, n"""
LOOK_AT_PAUSES = """SELECT name, round(extract(epoch FROM paused_until - now()) / 3600)::int
FROM jobq.queues WHERE paused_until > now()"""


def assert_alike(connection: sa.Connection, model: Reference) -> None:
    """Jobs, slots and pauses, in hours from now."""
    assert [tuple(row) for row in connection.exec_driver_sql(LOOK)] == [_seen(model, row) for row in _rows(model)]
    assert [tuple(row) for row in connection.exec_driver_sql(LOOK_AT_SLOTS)] == list(_seen_slots(model))
    pauses = {name: model.paused[name][0] - model.hour for name in QUEUES if model.is_paused(name)}
    assert dict(map(tuple, connection.exec_driver_sql(LOOK_AT_PAUSES))) == pauses


def _rows(model: Reference) -> list[Row]:
    return sorted(model.rows.values(), key=lambda row: row.id)


def _seen(model: Reference, row: Row) -> tuple[Any, ...]:
    expires = None if row.is_open else row.expires_at[0] - model.hour
    due = row.run_at[0] - model.hour
    named = (row.id, row.number, row.kind, row.queue, row.priority, row.state, row.attempt, row.failures, row.errors)
    return *named, row.key, row.worker, row.max_attempts, due, expires


def _seen_slots(model: Reference) -> Iterator[tuple[Any, ...]]:
    for queue, slots in sorted(model.slots.items()):
        for n, slot in enumerate(slots, 1):
            yield queue, n, *(slot.holder or (None, None, None)), _wait(model, slot)


def _wait(model: Reference, slot: Slot) -> int | None:
    hours = slot.ready_at[0] - model.hour
    return hours if hours > 0 else None
