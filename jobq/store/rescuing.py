"""Taking back the jobs of lost workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from jobq.model import Position, State
from jobq.retention import KEEP_ENDED
from jobq.statements import lease as statements
from jobq.statements import slots as slot_statements
from jobq.store.announcing import announce


@dataclass(frozen=True, slots=True)
class Rescued:
    """A job that was taken back, and what became of it."""

    id: int
    kind: str
    attempt: int
    state: State


@dataclass(frozen=True, slots=True)
class Rescue:
    """One pass. `is_complete` is False when rows were locked by others: the next pass has to look again."""

    jobs: tuple[Rescued, ...] = ()
    lost_workers: tuple[str, ...] = ()
    is_complete: bool = True


class Glance(NamedTuple):
    """How many workers a rescue would delete, by the server's time `at`."""

    lost: int
    at: datetime


def lost_workers(connection: sa.Connection, *, connected_for: timedelta) -> Glance:
    """A glance that locks nothing. Jobs of workers without a row it misses."""
    binds = {"connected_seconds": connected_for.total_seconds()}
    row = connection.execute(statements.lost_workers(), binds).one()
    return Glance(row.lost, row.at)


def rescue(
    connection: sa.Connection, *, connected_for: timedelta, look_everywhere: bool, channel: str | None
) -> Rescue:
    """Delete the workers whose lease ran out and make their jobs pending again, or dead. In one transaction.

    `look_everywhere`: look for ids without a worker's row even when no worker was deleted now (reads all of `jobs`).
    """
    if not connection.execute(statements.begin_rescue()).one()[0]:
        return Rescue(is_complete=not look_everywhere)
    binds = {"connected_seconds": connected_for.total_seconds()}
    names = {row.id: row.name for row in connection.execute(statements.delete_lost_workers(), binds)}
    if not names and not look_everywhere:
        return Rescue()
    gone = list(connection.execute(statements.gone_workers()).scalars())
    if not gone:
        return Rescue(lost_workers=tuple(names.values()))
    rows = connection.execute(
        statements.take_back(), {"gone": gone, "names": [names.get(id_, f"worker {id_}") for id_ in gone]}
    ).all()
    _bury(connection, rows)
    connection.execute(slot_statements.release_slots(), {"gone": gone})
    announce(connection, [Position(r.queue, r.priority, r.run_at) for r in rows if not _is_dead(r)], channel=channel)
    left = connection.execute(statements.left_behind(), {"gone": gone}).scalar_one()
    return Rescue(tuple(_rescued(row) for row in rows), tuple(names.values()), is_complete=left == 0)


def _is_dead(row: sa.Row[Any]) -> bool:
    return bool(row.spent or row.interrupted)


def _bury(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> None:
    """Those out of attempts, and those that an interruption ends, each with the outcome that says which."""
    ends = {
        "err: interrupted": [row.id for row in rows if row.interrupted],
        "err: WorkerLost: worker lost": [row.id for row in rows if row.spent and not row.interrupted],
    }
    for outcome, ids in ends.items():
        if ids:
            binds = {"ids": ids, "outcome": outcome, "least_seconds": KEEP_ENDED.total_seconds()}
            connection.execute(statements.bury(), binds)


def _rescued(row: sa.Row[Any]) -> Rescued:
    return Rescued(row.id, row.kind, row.attempt, State.DEAD if _is_dead(row) else State.PENDING)
