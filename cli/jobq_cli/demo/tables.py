"""The shop's own tables: what a business would have beside its jobs, in the same database."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

TIME = sa.TIMESTAMP(timezone=True)


class Base(DeclarativeBase):
    metadata = sa.MetaData(schema="shop")


class Order(Base):
    """Written in one transaction with the job that sends its receipt."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(sa.BigInteger, sa.Identity(), primary_key=True)
    customer: Mapped[str] = mapped_column(sa.Text)
    cents: Mapped[int]


class Receipt(Base):
    """Written in one transaction with the end of its job, so that there is one for each order."""

    __tablename__ = "receipts"
    id: Mapped[int] = mapped_column(sa.BigInteger, sa.Identity(), primary_key=True)
    order_id: Mapped[int] = mapped_column(sa.BigInteger)
    sent_to: Mapped[str] = mapped_column(sa.Text)


class Thumbnail(Base):
    """A picture made smaller, in a thread."""

    __tablename__ = "thumbnails"
    id: Mapped[int] = mapped_column(sa.BigInteger, sa.Identity(), primary_key=True)
    product: Mapped[int]
    pixels: Mapped[bytes] = mapped_column(sa.LargeBinary)


class Reindexing(Base):
    """A wish to have a product indexed anew; `created` is False where a job for it was open already."""

    __tablename__ = "reindexings"
    id: Mapped[int] = mapped_column(sa.BigInteger, sa.Identity(), primary_key=True)
    product: Mapped[int]
    job_id: Mapped[int] = mapped_column(sa.BigInteger)
    created: Mapped[bool]


class Declined(Base):
    """An order that was rolled back with its job: noted afterwards, with the id that the job would have had."""

    __tablename__ = "declined"
    id: Mapped[int] = mapped_column(sa.BigInteger, sa.Identity(), primary_key=True)
    customer: Mapped[str] = mapped_column(sa.Text)
    job_id: Mapped[int] = mapped_column(sa.BigInteger)


class Killed(Base):
    """A worker that was ended with SIGKILL, and the jobs that it held then."""

    __tablename__ = "killed"
    id: Mapped[int] = mapped_column(sa.BigInteger, sa.Identity(), primary_key=True)
    worker: Mapped[str] = mapped_column(sa.Text)
    pid: Mapped[int]
    job_ids: Mapped[list[int]] = mapped_column(ARRAY(sa.BigInteger))
    at: Mapped[datetime] = mapped_column(TIME, server_default=sa.func.now())
