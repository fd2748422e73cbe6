"""Repairs of many jobs by predicates, which may ask the caller's own tables."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from admin_rows import add_ended, add_job, everything
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import jobq
from jobq.errors import OptionError
from jobq.tables import all_jobs, finished_jobs, jobs

pytestmark = [pytest.mark.anyio, pytest.mark.duty("operate")]


class Base(DeclarativeBase):
    pass


class Tenant(Base):
    __tablename__ = "tenants"
    id: Mapped[int] = mapped_column(primary_key=True)
    paying: Mapped[bool]


@pytest.fixture
def tenants(session: Session) -> Session:
    """Tenant 1 pays, 2 does not."""
    Base.metadata.create_all(session.connection())
    session.add_all([Tenant(id=1, paying=True), Tenant(id=2, paying=False)])
    session.flush()
    return session


def dead_of(session: Session, *tenant_ids: int, **values: object) -> list[int]:
    return [add_ended(session.connection(), args={"tenant": each}, **values) for each in tenant_ids]


PAYING = sa.select(Tenant.id).where(Tenant.paying)


@pytest.mark.parametrize("table", [all_jobs, jobs, finished_jobs], ids=lambda table: table.name)
def test_ended_jobs_are_retried_by_what_the_callers_tables_say(tenants: Session, table: sa.Table) -> None:
    chosen, other = dead_of(tenants, 1, 2)

    retried = jobq.retry(tenants, table.c.args["tenant"].as_integer().in_(PAYING))

    assert retried.ids == (chosen,)
    assert [job.id for job in jobq.jobs(tenants, finished_jobs.c.id > 0)] == [other]


@pytest.mark.parametrize("table", [all_jobs, jobs], ids=lambda table: table.name)
def test_waiting_jobs_are_cancelled_by_an_exists_about_each_of_them(tenants: Session, table: sa.Table) -> None:
    chosen, other = (add_job(tenants.connection(), args={"tenant": each}) for each in (1, 2))
    same = sa.exists().where(Tenant.id == table.c.args["tenant"].as_integer(), Tenant.paying)

    cancelled = jobq.cancel(tenants, same)

    assert cancelled.ids == (chosen,)
    assert [job.id for job in jobq.jobs(tenants, jobs.c.id > 0)] == [other]


def test_a_subquery_of_its_own_keeps_the_tables_that_it_names(tenants: Session) -> None:
    connection = tenants.connection()
    held, free = (add_ended(connection, unique_key=key, kind="k") for key in ("held", "free"))
    add_job(connection, unique_key="held", kind="k")
    dead_of(tenants, 1, 2, kind="other")

    without = finished_jobs.c.unique_key.not_in(sa.select(jobs.c.unique_key).where(jobs.c.unique_key.is_not(None)))
    waiting_kinds = all_jobs.c.kind.in_(sa.select(all_jobs.c.kind).where(all_jobs.c.state == "pending"))
    joined = all_jobs.c.id.in_(
        sa.select(finished_jobs.c.id).join(Tenant, Tenant.id == finished_jobs.c.args["tenant"].as_integer())
    )

    assert [job.id for job in jobq.jobs(tenants, without)] == [free]
    assert len(jobq.jobs(tenants, waiting_kinds)) == 3
    assert len(jobq.retry(tenants, joined, all_jobs.c.kind == "other").ids) == 2
    assert jobq.retry(tenants, without, waiting_kinds).ids == (free,)
    assert jobq.get(tenants, held).state is jobq.State.DEAD  # type: ignore[union-attr]


def test_words_about_ended_jobs_do_not_cancel_waiting_ones(connection: sa.Connection) -> None:
    add_job(connection)
    before = everything(connection)

    with pytest.raises(OptionError, match="all_jobs fits both"):
        jobq.cancel(connection, finished_jobs.c.kind == "email.send")
    assert jobq.cancel(connection, all_jobs.c.state == "dead").ids == ()

    assert everything(connection) == before


async def test_the_async_twins_take_the_same_predicates(engine: sa.Engine, database_url: str) -> None:
    with engine.begin() as connection:
        Base.metadata.create_all(connection)
        connection.execute(sa.insert(Tenant).values(id=1, paying=True))
        dead, waits = add_ended(connection, args={"tenant": 1}), add_job(connection, args={"tenant": 1})
    tenant = all_jobs.c.args["tenant"].as_integer().in_(PAYING)
    async_engine = create_async_engine(database_url)
    try:
        async with AsyncSession(async_engine) as session:
            found = await jobq.jobs_async(session, tenant)
            cancelled = await jobq.cancel_async(session, tenant)
            retried = await jobq.retry_async(session, tenant, all_jobs.c.state == "dead")
    finally:
        await async_engine.dispose()

    assert [job.id for job in found] == [waits, dead]
    assert (cancelled.ids, retried.ids) == ((waits,), (dead,))
