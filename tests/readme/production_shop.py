"""The application of whoever runs workers in production: handlers that end, that run on, that cannot be stopped."""

from __future__ import annotations

from sqlalchemy.orm import Session

import jobq

APP = """
import asyncio, logging
import jobq
import sqlalchemy as sa

app = jobq.App()
logger = logging.getLogger("shop")

@app.handler("long")
async def long() -> None:
    logger.info("begun")
    await asyncio.sleep(60)

@app.handler("stubborn")
async def stubborn() -> None:
    logger.info("begun")
    while True:
        try:
            await asyncio.sleep(60)
        except BaseException:
            pass

@app.handler("inside")
async def inside() -> None:
    async with jobq.current().transaction() as session:
        await session.execute(sa.text("SELECT 1"))
        logger.info("begun")
        await asyncio.sleep(60)

@app.handler("greeting")
async def greeting(name: str) -> str:
    return name
"""
NEWER = """

@app.handler("report")
async def report() -> None: ...
"""


def enqueued(session: Session, kind: str, **args: object) -> int:
    job = jobq.enqueue(session, jobq.kind(kind, queue="default"), **args)
    session.commit()
    return job.id


def seen(session: Session, job_id: int) -> jobq.Job:
    session.rollback()
    job = jobq.get(session, job_id)
    assert job is not None
    return job
