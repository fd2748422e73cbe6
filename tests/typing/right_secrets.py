# pyright: strict
"""Right calls with secrets: no type checker complains. Read by test_typing.py, never executed."""

from __future__ import annotations

from typing import assert_type

from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

import jobq

app = jobq.App()


@app.handler("card.charge")
async def charge(token: jobq.Secret[str], pins: list[jobq.Secret[int]]) -> str:
    assert_type(token, str)
    assert_type(pins, list[int])
    return token.upper()


def enqueues(s: Session) -> None:
    jobq.enqueue(s, charge, token="t", pins=[1])
    jobq.enqueue(s, charge, "t", [1])
    jobq.enqueue_many(s, charge, [charge.args("t", pins=[])])


async def enqueues_async(s: AsyncSession) -> None:
    await jobq.enqueue_async(s, charge, token="t", pins=[1])
