"""Attacker 10: JSON values through each driver, equal after the trip, or refused before any SQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa
from callers import DRIVERS, Caller, made, url_of
from lengths import length
from payloads import poisoned, same, value
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from tally import tally

import jobq

pytestmark = pytest.mark.anyio
VALUES = length(ci=10_000, chaos=50_000, long=1_000_000)
BATCH = 1_000  # values a transaction
POISONED = 20  # of each batch
# What is planted in this process alone: values that jsonb rounds are sent as they are; nobody looks for NUL.
PLANTED: dict[str, tuple[str, Any]] = {
    "floats are sent as they are": ("jobq.codec.exact.exact_float", lambda number: number),
    "nobody looks for NUL": ("jobq.codec.text.inspect_tree", lambda tree: None),
}
app = jobq.App()


@app.handler("payload.any")
async def take_any(x: Any) -> None: ...


@pytest.fixture(params=DRIVERS)
async def caller(shared_database_url: str, request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    url = url_of(shared_database_url, request.param)
    if request.param.endswith(" async"):
        async_engine = create_async_engine(url)
        async with AsyncSession(async_engine) as async_session:
            yield Caller(async_session, "jobq")
        await async_engine.dispose()
    else:
        with made(url) as engine, Session(engine) as session:
            yield Caller(session, "jobq")


@pytest.mark.timeout(VALUES / 20 + 60)
async def test_a_payload_arrives_equal_or_is_refused_before_any_sql(caller: Caller) -> None:
    refused = 0
    for seed in range(VALUES // BATCH):
        refused += await attack(caller, Random(seed))

    tally("A10 payloads", guarantees="G1", values=VALUES, refused=refused, violations=0)


@pytest.mark.parametrize("fault", PLANTED)
@pytest.mark.parametrize("caller", ["psycopg"], indirect=True)
async def test_the_payloads_see_the_fault(caller: Caller, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    place, instead = PLANTED[fault]
    monkeypatch.setattr(place, instead)

    with pytest.raises((AssertionError, sa.exc.DBAPIError)):
        await attack(caller, Random(0))

    tally("A10 seeded faults", guarantees="G1", caught=1)


async def attack(caller: Caller, random: Random) -> int:
    """A transaction of good values, and of such as are to be refused; how many of these."""
    values = [value(random) for _ in range(BATCH)]
    given = await caller.call("enqueue_many", take_any, [take_any.args(each) for each in values])
    poisons = [poisoned(random) for _ in range(POISONED)]
    with sent_by(caller) as sent:
        for each in poisons:
            assert await is_refused(caller.call, "enqueue", take_any, each), each
            assert await is_refused(caller.call, "enqueue_many", take_any, [{"x": 1}, {"x": each}]), each
    assert sent == []

    stored = {row.id: row.text for row in await caller.rows()}
    assert len(stored) == len(given) == BATCH  # the transaction is alive, and nothing of what was refused is in it
    for sent_value, answer in zip(values, given, strict=True):
        assert same(take_any.codec.decode(stored[answer.id])["x"], sent_value), sent_value
    await caller.do("rollback")
    return POISONED


async def is_refused(call: Callable[..., Awaitable[Any]], *args: Any) -> bool:
    try:
        await call(*args)
    except jobq.ArgsError:
        return True
    return False


@contextmanager
def sent_by(caller: Caller) -> Iterator[list[str]]:
    """The SQL that the caller's engine sends meanwhile."""
    bind = caller.session.get_bind()
    engine = bind if isinstance(bind, sa.Engine) else bind.engine
    texts: list[str] = []

    def note(_: Any, __: Any, sql: str, *___: Any) -> None:
        texts.append(sql)

    event.listen(engine, "before_cursor_execute", note)
    yield texts
    event.remove(engine, "before_cursor_execute", note)
