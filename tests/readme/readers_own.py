"""The code of whoever reads the documents: what their snippets name and do not show. Executed in front of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import sqlalchemy as sa
from flask import Flask
from sqlalchemy import select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import jobq
import jobq.sentry
import jobq.tracing

__all__ = ["UTC", "AsyncIterator", "Session", "asynccontextmanager", "datetime", "jobq", "sa", "select", "suppress"]


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    paid: Mapped[bool] = mapped_column(default=True)


class Payment(Base):
    __tablename__ = "payments"
    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int]


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str]


class Company(Base):
    __tablename__ = "companies"
    id: Mapped[int] = mapped_column(primary_key=True)
    is_paying: Mapped[bool]


class CardDeclined(Exception):
    pass


class PaymentApi:
    async def __aenter__(self) -> PaymentApi:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


handlers = jobq.Registry()


@handlers.handler("company.reindex", unique=("company_id",))
def reindex(company_id: int) -> None: ...


@handlers.handler("company.latest", unique=("company_id",))
def latest(company_id: int, rows: list[str]) -> None: ...


@handlers.handler("mail.send")
def send_mail(to: str) -> None: ...


order = Order()
rows = ["one", "two"]
ids = [1, 2, 3]
flask_app = Flask("shop")
reported: list[BaseException] = []
sentry_sdk = SimpleNamespace(capture_exception=reported.append)
in_five_minutes = datetime.now(UTC) + timedelta(minutes=5)
