"""The application's side of the table: a session of some driver, and what tests do with it in either form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

import jobq
from jobq.tables import jobs

SYNC = ["psycopg", "psycopg2", "pg8000"]
ASYNC = ["psycopg", "asyncpg"]
DRIVERS = [*SYNC, *[f"{name} async" for name in ASYNC]]
SCHEMAS = ["jobq", "Other"]


class Caller:
    """A session of one driver; `call` is the sync function, or its async twin where the session is async.

    A driver that is not installed fails here.
    """

    def __init__(self, session: Session | AsyncSession, schema: str) -> None:
        self.session: Any = session
        self.is_async = isinstance(session, AsyncSession)
        self.schema = schema

    async def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if self.is_async:
            return await getattr(jobq, f"{name}_async")(self.session, *args, **kwargs)
        return getattr(jobq, name)(self.session, *args, **kwargs)

    async def do(self, name: str, *args: Any) -> Any:
        """A method of the session itself."""
        done = getattr(self.session, name)(*args)
        return await done if self.is_async else done

    async def rows(self) -> list[sa.Row[Any]]:
        """The open jobs, without any help of jobq's: also where its tables are is said here."""
        named = sa.select(jobs, sa.cast(jobs.c.args, sa.Text).label("text")).order_by(jobs.c.id)
        return list((await self.do("execute", named)).all())

    async def counts(self) -> dict[str, int]:
        """How many open jobs there are in each schema."""
        found = {}
        for schema in SCHEMAS:
            table = sa.table("jobs", schema=schema)
            (found[schema],) = (await self.do("execute", sa.select(sa.func.count()).select_from(table))).one()
        return found


def url_of(database_url: str, driver: str) -> sa.URL:
    return sa.make_url(database_url).set(drivername=f"postgresql+{driver.removesuffix(' async')}")


@contextmanager
def made(url: sa.URL, **options: Any) -> Iterator[sa.Engine]:
    """An engine, for as long as it is needed."""
    engine = sa.create_engine(url, **options)
    yield engine
    engine.dispose()


def translated(schema: str) -> dict[str, Any]:
    return {} if schema == "jobq" else {"schema_translate_map": {"jobq": schema}}
