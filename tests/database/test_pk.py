"""The key of an object for the args of a job: flushed when it has none yet, or a word about why there is none."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import jobq
from jobq.errors import ArgsError, OptionTypeError
from jobq.keys import pk

app = jobq.App()


class Base(DeclarativeBase): ...


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column("order_id", primary_key=True)
    note: Mapped[str | None]


class Invoice(Base):
    __tablename__ = "invoices"
    key: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)


class Line(Base):
    __tablename__ = "lines"
    order_id: Mapped[int] = mapped_column(primary_key=True)
    n: Mapped[int] = mapped_column(primary_key=True)


@app.handler("receipt.send")
def send_receipt(order_id: int, key: UUID | None = None) -> None: ...


@pytest.fixture
def shop(session: Session) -> Session:
    Base.metadata.create_all(session.connection())
    return session


def test_a_new_object_is_flushed_and_its_key_given(shop: Session) -> None:
    order, invoice = Order(), Invoice()
    shop.add_all([order, invoice])

    given = jobq.enqueue(shop, send_receipt, order_id=pk(order), key=pk(invoice))

    job = jobq.get(shop, given.id)
    assert job is not None
    assert job.args == {"order_id": order.id, "key": str(invoice.key)}
    assert shop.get(Order, order.id) is order


def test_a_key_that_is_there_costs_no_sql(shop: Session, shared_engine: sa.Engine) -> None:
    order = Order()
    shop.add(order)
    key = pk(order)
    shop.commit()  # expires it
    sent: list[str] = []
    event.listen(shared_engine, "before_cursor_execute", note := lambda *args: sent.append(args[2]))

    assert pk(order) == key
    event.remove(shared_engine, "before_cursor_execute", note)
    assert sent == []


def test_a_key_that_was_changed_is_the_new_one(shop: Session) -> None:
    order = Order(id=1)
    shop.add(order)
    shop.flush()
    order.id = 5
    assert pk(order) == 5


def test_an_error_of_the_flush_reaches_the_caller(shop: Session) -> None:
    shop.execute(sa.insert(Order).values(order_id=1))
    order = Order(id=1)
    shop.add(order)
    with pytest.raises(sa.exc.IntegrityError):
        pk(order)


def deleted(shop: Session) -> Order:
    order = Order()
    shop.add(order)
    shop.flush()
    shop.delete(order)
    shop.flush()
    return order


def closed(shop: Session) -> Order:
    order = Order()
    shop.add(order)
    shop.flush()
    shop.expunge(order)
    return order


WITHOUT: list[tuple[Any, str]] = [
    (lambda shop: Order(id=7), r"pk\(Order\): a transient object, no session has it: session\.add\(object\) first"),
    (closed, r"pk\(Order\): a detached object, .*: take the key before, or session\.add\(object\)"),
    (deleted, r"pk\(Order\): a deleted object, a handler would not find it"),
]


@pytest.mark.parametrize(("make", "message"), WITHOUT, ids=["transient", "detached", "deleted"])
def test_an_object_without_a_session_is_refused_with_a_hint(shop: Session, make: Any, message: str) -> None:
    order = make(shop)
    with pytest.raises(ArgsError, match=message):
        pk(order)


def test_a_composite_key_is_refused_with_the_names_of_its_parts(shop: Session) -> None:
    line = Line(order_id=1, n=2)
    shop.add(line)
    with pytest.raises(ArgsError, match=r"pk\(Line\): a composite key \(order_id, n\): pass each part as an argument"):
        pk(line)


@pytest.mark.parametrize("wrong", [None, 7, Order, object()], ids=["None", "a key", "a class", "an object"])
def test_what_is_no_object_of_the_orm_is_refused(wrong: Any) -> None:
    with pytest.raises(OptionTypeError, match="pk: expected an object of the ORM, got"):
        pk(wrong)


def test_the_error_of_a_key_that_is_still_none_names_it(shop: Session) -> None:
    order, invoice = Order(), Invoice()
    shop.add_all([order, invoice])
    with pytest.raises(
        ArgsError, match=r"args\.order_id: expected int, got None \(the key of a new object\? jobq\.pk\("
    ):
        jobq.enqueue(shop, send_receipt, order_id=order.id)
    assert jobq.jobs(shop) == []


@pytest.mark.parametrize("name", ["after_flush", "before_commit"])
def test_in_events_of_the_session_the_key_is_there(shop: Session, name: str) -> None:
    keys: list[Any] = []
    order = Order()
    event.listen(shop, name, lambda *_: keys.append(pk(order)))
    shop.add(order)
    shop.commit()
    assert keys == [order.id]


def test_before_the_flush_there_is_no_key_yet(shop: Session) -> None:
    order = Order()
    event.listen(shop, "before_flush", lambda *_: pk(order))
    shop.add(order)
    with pytest.raises(
        ArgsError, match="no key yet, the flush has not reached it; ask in after_flush or before_commit"
    ):
        shop.flush()


@pytest.mark.anyio
async def test_a_new_object_of_an_async_session_has_to_be_flushed_before(database_url: str) -> None:
    engine = create_async_engine(database_url)
    async with AsyncSession(engine) as session:
        await (await session.connection()).run_sync(Base.metadata.create_all)
        first, second = Order(), Order()
        session.add(first)
        with pytest.raises(ArgsError, match="not flushed yet, and its session is async: await session"):
            pk(first)
        await session.flush()
        assert pk(first) == first.id
        session.add(second)
        assert await session.run_sync(lambda _: pk(second)) == second.id
    await engine.dispose()
