"""Faults that are put in for a test, in its own process: what does not see them sees nothing.

Statements are built once and kept, so they are forgotten before and after each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from jobq import admin
from jobq.statements import admin as admin_statements
from jobq.statements import (
    claim,
    clean,
    enqueue,
    enqueue_rows,
    finish,
    lease,
    put_back,
    recorded,
    slot_claims,
    slots,
    unique,
)
from jobq.statements import testing as testing_statements
from jobq.store import inserting
from jobq.tables import finished_jobs, jobs
from jobq.testing import solo

Patch = Callable[[pytest.MonkeyPatch, sa.Engine], None]
MODULES = (
    admin_statements, claim, clean, enqueue, enqueue_rows, finish, lease, put_back, recorded, slot_claims, slots,
    testing_statements,
)  # fmt: skip
ALWAYS: sa.ColumnElement[bool] = sa.literal_column("TRUE", sa.Boolean)
UNLESS_SEEN = sa.text("WHERE NOT EXISTS (SELECT FROM jobq.jobs held WHERE held.unique_key = wanted.unique_key)")


@contextmanager
def planted(patch: Patch, engine: sa.Engine) -> Iterator[None]:
    """With the fault in, for the block."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        forget()
        patch(monkeypatch, engine)
        try:
            yield
        finally:
            forget()


def forget() -> None:
    """What was built of statements is built anew when it is next asked for."""
    for module in MODULES:
        for function in vars(module).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()


def no_fence(monkeypatch: pytest.MonkeyPatch, engine: sa.Engine) -> None:
    """A write asks for the id alone."""

    def loose(fence: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
        def by_id(*args: Any) -> tuple[Any, ...]:
            id_, *rest = fence(*args)
            return id_, *[sa.or_(ALWAYS, each) for each in rest]  # with its binds, or they would be taken for columns

        return by_id

    for module, name in ((finish, "held"), (put_back, "held"), (put_back, "still_mine"), (recorded, "still_mine")):
        monkeypatch.setattr(module, name, loose(getattr(module, name)))


def one_attempt_more(monkeypatch: pytest.MonkeyPatch, engine: sa.Engine) -> None:
    """Dead after max_attempts + 1 failures."""
    held_of = solo.held_of

    def lenient(*args: Any) -> Any:
        held = held_of(*args)
        return replace(held, max_attempts=held.max_attempts + 1)

    monkeypatch.setattr(solo, "held_of", lenient)


def cleaner_that_does_not_wait(monkeypatch: pytest.MonkeyPatch, engine: sa.Engine) -> None:
    """To have ended is enough."""
    monkeypatch.setattr(clean, "_is_over", lambda: (finished_jobs.c.finished_at <= sa.func.now(),))


def keys_that_are_looked_up(monkeypatch: pytest.MonkeyPatch, engine: sa.Engine) -> None:
    """Whether a key is held is asked, and then the job inserted: no index is in the way."""
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP INDEX jobq.jobs_unique")
    monkeypatch.setattr(unique, "UNLESS_HELD", UNLESS_SEEN)


def endless_rescue(monkeypatch: pytest.MonkeyPatch, engine: sa.Engine) -> None:
    """A rescued job is never out of attempts."""
    monkeypatch.setattr(lease, "_is_spent", lambda: sa.false().label("spent"))


def enqueue_for_itself(monkeypatch: pytest.MonkeyPatch, engine: sa.Engine) -> None:
    """Not in the caller's transaction."""
    insert = inserting.insert

    def apart(_: sa.Connection, *args: Any) -> Any:
        with engine.begin() as connection:
            return insert(connection, *args)

    monkeypatch.setattr(inserting, "insert", apart)


def claim_too_early(monkeypatch: pytest.MonkeyPatch, engine: sa.Engine) -> None:
    """Whatever run_at says."""

    def waits(one: Any) -> tuple[sa.ColumnElement[bool], ...]:
        _, has_attempt_left = claim.may_run(one)
        return has_attempt_left, one.c.worker_id.is_(None)

    for module in (claim, slot_claims, testing_statements):
        monkeypatch.setattr(module, "is_due", waits)


def no_limit(monkeypatch: pytest.MonkeyPatch, engine: sa.Engine) -> None:
    """A claim by lanes, of a worker that has not heard of limits."""
    open_lanes = claim._open_lanes
    none = sa.select(claim.EMPTY.label("closed")).cte("none")
    of_none = sa.select(jobs.c.queue.label("name"), sa.false().label("fifo")).where(sa.false())
    monkeypatch.setattr(testing_statements, "limits", lambda: of_none)
    monkeypatch.setattr(claim, "_open_lanes", lambda _: open_lanes(none))


def retry_that_deletes_first(monkeypatch: pytest.MonkeyPatch, engine: sa.Engine) -> None:
    """Of a job whose key is taken nothing is left."""
    retry_ids = admin.retry_ids

    def careless(connection: sa.Connection, ids: Any) -> Any:
        repaired = retry_ids(connection, ids)
        connection.execute(sa.delete(finished_jobs).where(finished_jobs.c.id.in_(ids)))
        return repaired

    monkeypatch.setattr(admin, "retry_ids", careless)


def errors_that_are_not_kept(monkeypatch: pytest.MonkeyPatch, engine: sa.Engine) -> None:
    """The dead letter says nothing."""
    for module in (finish, put_back, lease):
        monkeypatch.setattr(module, "with_error", lambda errors, error: errors)


PLANTED: dict[str, Patch] = {
    patch.__name__: patch
    for patch in (
        no_fence,
        one_attempt_more,
        cleaner_that_does_not_wait,
        keys_that_are_looked_up,
        endless_rescue,
        enqueue_for_itself,
        claim_too_early,
        no_limit,
        retry_that_deletes_first,
        errors_that_are_not_kept,
    )
}
