"""The shop's own tables. It has no migrations: `create_all` makes them, and never sees those of jobq."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship


class Base(DeclarativeBase): ...


class Customer(Base):
    __tablename__ = "customers"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    email: Mapped[str]


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(sa.ForeignKey("customers.id"), index=True)
    total: Mapped[int]
    receipt_at: Mapped[datetime | None] = mapped_column(sa.TIMESTAMP(timezone=True))

    customer: Mapped[Customer] = relationship(lazy="joined")


def fill(session: Session) -> None:
    """What there was before jobq: one order with its receipt, three without, and an address that cannot be right."""
    ada = Customer(name="Ada", email="ada@example.org")
    bob = Customer(name="Bob", email="bob at example.org")
    session.add(Order(customer=ada, total=30, receipt_at=sa.func.now()))
    session.add_all([Order(customer=bob, total=12), Order(customer=ada, total=7), Order(customer=bob, total=50)])
