"""Pausing queues and setting them, in the caller's transaction."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from store_rows import listening

import jobq
from jobq.errors import BindError, OptionError, OptionTypeError
from jobq.tables import queues

pytestmark = pytest.mark.duty("operate")

HOUR = timedelta(hours=1)
SAID = (queues.c.weight, queues.c.fifo, queues.c.concurrency)


def test_a_pause_by_hand_has_the_length_it_is_given_whatever_was_before(session: Session) -> None:
    now = session.execute(sa.select(NOW)).scalar_one()

    assert jobq.pause(session, "q", 2 * HOUR, reason="a") == now + 2 * HOUR
    assert jobq.pause(session, "q", HOUR, reason="b") == now + HOUR
    (row,) = jobq.queues(session)
    assert (row.name, row.paused_until, row.pause_reason) == ("q", now + HOUR, "b")
    assert jobq.pause(session, "q") is None
    (row,) = jobq.queues(session)
    assert row.paused_until is not None
    assert row.paused_until.year == 9000
    assert jobq.stats(session).queues[0].paused_until == row.paused_until


def test_a_resume_ends_it_and_says_whether_there_was_one(session: Session) -> None:
    jobq.pause(session, "q", HOUR, reason="a")

    assert jobq.resume(session, "q")
    assert not jobq.resume(session, "q")
    assert not jobq.resume(session, "unheard-of")
    (row,) = jobq.queues(session)
    assert (row.paused_until, row.pause_reason) == (None, None)


def test_a_pause_is_part_of_the_callers_transaction(session: Session, connection: sa.Connection) -> None:
    with session.begin_nested() as savepoint:
        jobq.pause(session, "q", HOUR)
        savepoint.rollback()

    assert jobq.queues(session) == []


def test_the_fleet_is_told_of_a_pause_and_of_its_end(engine: sa.Engine) -> None:
    with listening(engine) as told:
        with engine.begin() as connection:
            jobq.pause(connection, "q", HOUR)
        assert told() == [f"q|{priority}|0.000000" for priority in range(4)]
        with engine.begin() as connection:
            jobq.resume(connection, "q")
        assert told() == [f"q|{priority}|0.000000" for priority in range(4)]
        with engine.begin() as connection:
            jobq.resume(connection, "q")
        assert told() == []


SET: dict[str, tuple[list[dict[str, Any]], tuple[Any, ...]]] = {
    "a weight": ([{"weight": 3}], (3, None, None)),
    "fifo": ([{"fifo": True}], (None, True, None)),
    "a limit": ([{"concurrency": 4}], (None, False, 4)),
    "fifo in place of a limit": ([{"concurrency": 4}, {"fifo": True}], (None, True, None)),
    "a limit in place of fifo": ([{"fifo": True}, {"concurrency": 4}], (None, False, 4)),
    "no limit, said": ([{"fifo": True}, {"concurrency": 0}], (None, False, None)),
    "all": ([{"weight": 9, "fifo": False, "concurrency": 2}], (9, False, 2)),
    "what is left out stays": ([{"concurrency": 4, "weight": 2}, {"weight": 3}], (3, False, 4)),
}


@pytest.mark.parametrize(("steps", "wanted"), SET.values(), ids=SET)
def test_what_is_set_by_hand_is_all_that_changes(
    session: Session, steps: list[dict[str, Any]], wanted: tuple[Any, ...]
) -> None:
    jobq.pause(session, "q", HOUR, reason="stays")
    for step in steps:
        jobq.set_queue(session, "q", **step)

    assert session.execute(sa.select(*SAID, queues.c.pause_reason)).one() == (*wanted, "stays")


WRONG: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "nothing": ({}, OptionError),
    "both limits": ({"fifo": True, "concurrency": 2}, OptionError),
    "a weight of 0": ({"weight": 0}, OptionError),
    "a number as fifo": ({"fifo": 1}, OptionTypeError),
    "a bool as weight": ({"weight": True}, OptionTypeError),
    "too many": ({"concurrency": 1001}, OptionError),
}


@pytest.mark.parametrize(("values", "error"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_set_is_refused_before_any_sql(
    session: Session, values: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        jobq.set_queue(session, "q", **values)

    assert jobq.queues(session) == []


@pytest.mark.parametrize("duration", [timedelta(0), -HOUR, timedelta(days=3651)], ids=["0", "negative", "too long"])
def test_a_pause_has_a_length_that_makes_sense(session: Session, duration: timedelta) -> None:
    with pytest.raises(OptionError, match="duration"):
        jobq.pause(session, "q", duration)


@pytest.mark.anyio
async def test_each_has_an_async_twin(database_url: str, session: Session) -> None:
    engine = create_async_engine(database_url)
    async with AsyncSession(engine) as bind:
        assert await jobq.pause_async(bind, "q", reason="r") is None
        await jobq.set_queue_async(bind, "q", fifo=True)
        assert [(row.name, row.fifo, row.pause_reason) for row in await jobq.queues_async(bind)] == [("q", True, "r")]
        assert await jobq.resume_async(bind, "q")
        with pytest.raises(BindError, match="use pause_async"):
            jobq.pause(bind, "q")  # type: ignore[arg-type]
        with pytest.raises(BindError, match="use set_queue"):
            jobq.set_queue_async(session, "q", weight=1)  # type: ignore[arg-type]
    await engine.dispose()
