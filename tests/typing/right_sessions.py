# pyright: strict
"""Right: the sessions that frameworks make are taken as they are. Read by test_typing.py, never executed."""

from __future__ import annotations

from advanced_alchemy.config import SQLAlchemyAsyncConfig, SQLAlchemySyncConfig
from flask_sqlalchemy import SQLAlchemy
from right import send_email
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import Session
from sqlmodel import Session as SQLModelSession
from sqlmodel.ext.asyncio.session import AsyncSession as SQLModelAsyncSession

import jobq

db = SQLAlchemy()


def flask() -> None:
    jobq.enqueue(db.session, send_email, to="a@b.c")
    jobq.enqueue_many(db.session, send_email, [send_email.args("a@b.c")])
    with db.engine.begin() as connection:
        jobq.enqueue(connection, send_email, to="a@b.c")


def sqlmodel(session: SQLModelSession) -> None:
    jobq.enqueue(session, send_email, to="a@b.c")


async def sqlmodel_async(session: SQLModelAsyncSession) -> None:
    await jobq.enqueue_async(session, send_email, to="a@b.c")


def advanced_alchemy(config: SQLAlchemySyncConfig) -> None:
    with config.get_session() as session:
        jobq.enqueue(session, send_email, to="a@b.c")


async def advanced_alchemy_async(config: SQLAlchemyAsyncConfig) -> None:
    async with config.get_session() as session:
        await jobq.enqueue_async(session, send_email, to="a@b.c")


async def the_sync_side_of_async(connection: AsyncConnection) -> None:
    def work(session: Session) -> jobq.Enqueued:
        return jobq.enqueue(session, send_email, to="a@b.c")

    async with SQLModelAsyncSession(connection) as session:
        await session.run_sync(work)
