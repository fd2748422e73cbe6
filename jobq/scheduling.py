"""Looking at schedules and running one by hand, in the caller's transaction; the command line calls the same."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobq.bind import AsyncBind, Bind, connection_of, over
from jobq.callsite import callsite
from jobq.errors import UnknownScheduleError
from jobq.model import Enqueued
from jobq.schedule import Fate, Schedule, schedule_of
from jobq.statements import schedules as statements
from jobq.store import scheduling as store

NEXT_RUNS = 5


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule as the database has it.

    `explanation` is the expression in words; `next_runs` are in `timezone`, and empty for a predicate (`form` "when"),
    which lives in code alone. `last_tick` is None until the first tick has its `last_fate`. The three counts add up to
    the ticks since `first_seen_at`. `held`: a live worker's code has it; otherwise nobody fires it.
    """

    name: str
    kind: str
    form: str
    expression: str
    explanation: str
    timezone: str
    catch_up: str
    next_runs: tuple[datetime, ...]
    last_tick: datetime | None
    last_fate: Fate | None
    enqueued: int
    skipped: int
    missed: int
    held: bool
    first_seen_at: datetime
    read_at: datetime


def schedules(session: Bind, /, *, known: Mapping[str, Schedule] | None = None) -> list[ScheduleRow]:
    """The schedules that workers have published, by their names, with their next five runs.

    `known`: schedules of code that is at hand, by their names, for the next runs of predicates.
    """
    rows = connection_of(session, "schedules").execute(statements.read()).mappings()
    return [_row_of(row, known or {}) for row in rows]


def schedules_async(
    session: AsyncBind, /, *, known: Mapping[str, Schedule] | None = None
) -> Coroutine[Any, Any, list[ScheduleRow]]:
    """`schedules` for an AsyncSession or AsyncConnection."""
    return over(session, lambda bind: schedules(bind, known=known), called="schedules")


def run_schedule(session: Bind, name: str, /) -> Enqueued:
    """Enqueue a schedule's job now, whatever its next tick is, and whether or not a worker holds it.

    `created` is False while a copy is open, whose id it gives then. It counts as no tick. Raises: UnknownScheduleError.
    """
    connection = connection_of(session, "run_schedule")
    answer = store.enqueue_now(connection, name, callsite())
    if answer is None:
        raise UnknownScheduleError(name)
    return Enqueued(answer.id, answer.created)


def run_schedule_async(session: AsyncBind, name: str, /) -> Coroutine[Any, Any, Enqueued]:
    """`run_schedule` for an AsyncSession or AsyncConnection."""
    return over(session, run_schedule, name, called="run_schedule")


def _row_of(row: Mapping[Any, Any], known: Mapping[str, Schedule]) -> ScheduleRow:
    schedule = schedule_of(row["form"], row["expression"], row["timezone"]) or _same(known.get(row["name"]), row)
    fate = None if row["last_fate"] is None else Fate(row["last_fate"])
    own = ("name", "kind", "form", "expression", "timezone", "catch_up", "first_seen_at", "read_at")
    counts = ("enqueued", "skipped", "missed")
    return ScheduleRow(
        **{name: row[name] for name in (*own, *counts)},
        explanation=f"predicate {row['expression']}" if schedule is None else schedule.explain(),
        next_runs=() if schedule is None else schedule.next_runs(row["read_at"], NEXT_RUNS),
        last_tick=None if fate is None else row["last_tick"],
        last_fate=fate,
        held=row["holders"] > 0,
    )


def _same(schedule: Schedule | None, row: Mapping[Any, Any]) -> Schedule | None:
    """The schedule of the code, where it is the one of the row."""
    is_same = schedule is not None and (schedule.form, schedule.expression) == (row["form"], row["expression"])
    return schedule if is_same else None
