"""The demo's summary: every number in it is read from the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from jobq_cli.demo import statements


@dataclass(frozen=True, slots=True)
class Summary:
    """What the database says when all is over.

    `rolled_back_jobs`: ids that enqueues gave whose transaction was rolled back; `rolled_back_found`: how many of them
    are jobs. `held_when_killed`: the jobs of the worker that was killed; `rescued`: those taken back from it.
    """

    jobs: int
    done: int
    dead: int
    open: int
    seconds: float
    orders: int
    receipts: int
    orders_with_one_receipt: int
    thumbnails: int
    thumbnail_jobs: int
    wishes: int
    refused: int
    index_jobs: int
    scheduled: int
    started_early: int
    failed_attempts: int
    done_after_failures: int
    rolled_back_jobs: tuple[int, ...]
    rolled_back_found: int
    dead_jobs: tuple[int, ...]
    dead_error: str
    killed_worker: str
    killed_pid: int
    held_when_killed: tuple[int, ...]
    rescued: tuple[int, ...]
    rescued_done: tuple[int, ...]


def read(connection: sa.Connection) -> Summary:
    """Read the summary, in the caller's transaction."""
    counts = connection.execute(statements.counts()).mappings().one()
    shop = connection.execute(statements.shop_counts()).mappings().one()
    killed = connection.execute(statements.killed()).one_or_none()
    worker = "" if killed is None else killed.worker
    rescued = connection.execute(statements.rescued(), {"worker": worker}).all()
    dead = connection.execute(statements.dead()).all()
    return Summary(
        **counts,
        **shop,
        rolled_back_jobs=_ids(connection.execute(statements.declined()).all()),
        dead_jobs=_ids(dead),
        dead_error=dead[0].outcome if dead else "",
        killed_worker=worker,
        killed_pid=0 if killed is None else killed.pid,
        held_when_killed=() if killed is None else tuple(killed.job_ids),
        rescued=_ids(rescued),
        rescued_done=_ids([row for row in rescued if row.state == "done"]),
    )


def _ids(rows: Any) -> tuple[int, ...]:
    return tuple(row.id for row in rows)


def told(summary: Summary) -> list[tuple[bool, str]]:
    """The summary in sentences, each with whether it is as it has to be."""
    return [
        (summary.open == 0, _all(summary)),
        (
            summary.orders == summary.receipts == summary.orders_with_one_receipt,
            f"{summary.orders} orders, {summary.receipts} receipts: {summary.orders_with_one_receipt} orders have"
            " exactly one",
        ),
        (
            bool(summary.rolled_back_jobs) and summary.rolled_back_found == 0,
            f"{_named(summary.rolled_back_jobs)} rolled back with its order: found in the tables"
            f" {summary.rolled_back_found} times",
        ),
        (
            summary.wishes - summary.refused == summary.index_jobs,
            f"{summary.wishes} wishes to index {summary.index_jobs} products: {summary.refused} duplicates refused",
        ),
        (
            summary.started_early == 0,
            f"{summary.scheduled} jobs scheduled ahead, {summary.started_early} started early",
        ),
        (
            summary.thumbnails == summary.thumbnail_jobs,
            f"{summary.thumbnail_jobs} thumbnail jobs in threads, {summary.thumbnails} thumbnails",
        ),
        (
            True,
            f"{summary.failed_attempts} attempts failed, {summary.done_after_failures} jobs are done all the same",
        ),
        (bool(summary.dead_jobs), f"{_named(summary.dead_jobs)} dead: {summary.dead_error.removeprefix('err: ')}"),
        (_is_rescued(summary), _rescue(summary)),
    ]


def _all(summary: Summary) -> str:
    return (
        f"{summary.jobs} jobs in {summary.seconds:.1f} s: {summary.done} done, {summary.dead} dead,"
        f" {summary.open} left over"
    )


def _is_rescued(summary: Summary) -> bool:
    """The poisonous job may be among them: it is rescued like the others, and ends dead all the same."""
    sound = [each for each in summary.rescued if each not in summary.dead_jobs]
    is_complete = summary.held_when_killed == summary.rescued and sound == list(summary.rescued_done)
    return bool(summary.held_when_killed) and is_complete


def _rescue(summary: Summary) -> str:
    if not summary.killed_worker:
        return "no worker was killed: all was over before"
    return (
        f"{summary.killed_worker} was killed with {_named(summary.held_when_killed)}:"
        f" {len(summary.rescued)} rescued, {len(summary.rescued_done)} done"
    )


def _named(ids: tuple[int, ...]) -> str:
    if not ids:
        return "none"
    return f"job {ids[0]}" if len(ids) == 1 else f"jobs {', '.join(map(str, ids))}"
