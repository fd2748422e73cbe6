"""Sessions as applications have them: their transaction is the job's, whatever made them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
import sqlmodel
from callers import SYNC, made, url_of
from flask import Flask
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import event
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker

import jobq
from jobq.tables import jobs

with warnings.catch_warnings():
    warnings.simplefilter("ignore", sa.exc.SADeprecationWarning)  # of its own use of declarative_mixin
    from advanced_alchemy.config import SQLAlchemySyncConfig

pytestmark = pytest.mark.filterwarnings("ignore:.* in advanced-alchemy 1:DeprecationWarning")  # 1.10 warns of itself
app = jobq.App()
SECOND_DATABASE = "postgresql+psycopg://nobody@nowhere.invalid/nothing"
JSON_OF_ITS_OWN: dict[str, Any] = {"json_serializer": lambda value: b"not JSON", "json_deserializer": lambda text: "?"}


class Base(DeclarativeBase): ...


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)


@app.handler("receipt.send", unique=True)
async def send_receipt(order_id: int) -> None: ...


@contextmanager
def plain(engine: sa.Engine) -> Iterator[Any]:
    with Session(engine) as session:
        yield session


@contextmanager
def scoped(engine: sa.Engine) -> Iterator[Any]:
    session = scoped_session(sessionmaker(engine))
    yield session
    session.remove()


@contextmanager
def of_sqlmodel(engine: sa.Engine) -> Iterator[Any]:
    with sqlmodel.Session(engine) as session:
        yield session


@contextmanager
def of_flask(engine: sa.Engine) -> Iterator[Any]:
    flask_app = Flask("shop")
    flask_app.config["SQLALCHEMY_DATABASE_URI"] = engine.url
    flask_app.config["SQLALCHEMY_BINDS"] = {"archive": SECOND_DATABASE}
    db = SQLAlchemy(flask_app)
    with flask_app.app_context():
        yield db.session
        for each in db.engines.values():
            each.dispose()


@contextmanager
def of_advanced_alchemy(engine: sa.Engine) -> Iterator[Any]:
    config = SQLAlchemySyncConfig(engine_instance=engine)
    with config.get_session() as session:
        yield session


@contextmanager
def of_several_engines(engine: sa.Engine) -> Iterator[Any]:
    elsewhere = sa.table("elsewhere")
    with made(sa.make_url(SECOND_DATABASE)) as other, Session(engine, binds={elsewhere: other}) as session:
        yield session


@contextmanager
def routed(engine: sa.Engine) -> Iterator[Any]:
    """A session that chooses its engine itself, as for reading from a replica."""

    class Routed(Session):
        def get_bind(self, mapper: Any = None, *, clause: Any = None, **rest: Any) -> Any:
            assert mapper is not None or clause is not None, "it is said what the connection is for"
            return engine

    with Routed() as session:
        yield session


@contextmanager
def with_json_of_its_own(engine: sa.Engine) -> Iterator[Any]:
    with made(engine.url, **JSON_OF_ITS_OWN) as own, Session(own) as session:
        yield session


Kind = Callable[[sa.Engine], AbstractContextManager[Any]]
KINDS: list[Kind] = [
    plain,
    scoped,
    of_sqlmodel,
    of_flask,
    of_advanced_alchemy,
    of_several_engines,
    routed,
    with_json_of_its_own,
]


@pytest.fixture
def shop(engine: sa.Engine) -> sa.Engine:
    """An application's database: its own tables beside those of jobq."""
    Base.metadata.create_all(engine)
    return engine


def committed(engine: sa.Engine) -> list[Any]:
    """What another connection sees: the args of all jobs, by order."""
    with engine.connect() as connection:
        return sorted(connection.scalars(sa.select(jobs.c.args)), key=lambda args: args["order_id"])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_job_shares_the_fate_of_the_order(shop: sa.Engine, kind: Kind) -> None:
    orders = sa.select(Order.id.label("order_id"))
    with kind(shop) as session:
        session.add(Order(id=1))
        assert jobq.enqueue(session, send_receipt, order_id=1).created
        session.rollback()

        session.add(Order(id=2))
        assert jobq.enqueue_select(session, send_receipt, orders) == 1
        assert not jobq.enqueue(session, send_receipt, order_id=2).created
        (job,) = jobq.jobs(session)
        assert job.args == {"order_id": 2}
        assert committed(shop) == []
        session.commit()

        with session.begin_nested() as savepoint:
            jobq.enqueue_many(session, send_receipt, [{"order_id": n} for n in (3, 4)])
            savepoint.rollback()
        session.commit()
    assert committed(shop) == [{"order_id": 2}]


@pytest.mark.parametrize("driver", SYNC)
def test_an_engine_with_json_of_its_own_changes_nothing_with_any_driver(database_url: str, driver: str) -> None:
    bare = jobq.kind("any", queue="q")
    with made(url_of(database_url, driver), **JSON_OF_ITS_OWN) as engine, Session(engine) as session:
        first = jobq.enqueue(session, bare, x=[1, {"a": None}])
        (second,) = jobq.enqueue_many(session, bare, [{"x": "é"}])
        assert jobq.enqueue_select(session, bare, sa.select(sa.literal("z").label("x"))) == 1

        found = {job.id: job for job in jobq.jobs(session)}
        assert (found[first.id].args, found[second.id].args) == ({"x": [1, {"a": None}]}, {"x": "é"})
        assert jobq.cancel(session, first.id).ids == (first.id,)


def test_a_block_of_the_sessionmaker_commits_at_its_end_or_not_at_all(shop: sa.Engine) -> None:
    make = sessionmaker(shop)
    with make.begin() as session:
        jobq.enqueue(session, send_receipt, order_id=1)
        assert committed(shop) == []
    with pytest.raises(ZeroDivisionError), make.begin() as session:
        jobq.enqueue(session, send_receipt, order_id=1 // 0)

    assert committed(shop) == [{"order_id": 1}]


@pytest.mark.parametrize("driver", SYNC)
def test_a_two_phase_session_is_prepared_and_committed(database_url: str, driver: str) -> None:
    with made(url_of(database_url, driver)) as engine, Session(engine, twophase=True) as session:
        jobq.enqueue(session, send_receipt, order_id=1)
        jobq.enqueue_many(session, send_receipt, [{"order_id": 2}])
        jobq.enqueue_select(session, send_receipt, sa.select(sa.literal(3).label("order_id")))
        session.prepare()  # refused by PostgreSQL after a NOTIFY
        session.commit()
        jobq.enqueue(session, send_receipt, order_id=4)
        session.rollback()
        assert committed(engine) == [{"order_id": n} for n in (1, 2, 3)]


@pytest.mark.parametrize("name", ["before_flush", "after_flush", "before_commit"])
def test_f52_an_event_of_any_session_may_enqueue_what_is_being_written(shop: sa.Engine, name: str) -> None:
    def announce(session: Session, *_: Any) -> None:
        new = [order for order in session.new if isinstance(order, Order)] or session.scalars(sa.select(Order)).all()
        jobq.enqueue_many(session, send_receipt, [{"order_id": order.id} for order in new])

    make = sessionmaker(shop)
    event.listen(make, name, announce)
    with make.begin() as session:
        session.add_all([Order(id=1), Order(id=2)])

    assert committed(shop) == [{"order_id": 1}, {"order_id": 2}]


def test_nested_transactions_keep_what_their_own_end_says(shop: sa.Engine) -> None:
    with Session(shop) as session, session.begin():
        jobq.enqueue(session, send_receipt, order_id=1)
        with session.begin_nested():
            jobq.enqueue(session, send_receipt, order_id=2)
            with session.begin_nested() as inner:
                jobq.enqueue(session, send_receipt, order_id=3)
                inner.rollback()
        with session.begin_nested() as failed:
            jobq.enqueue_select(session, send_receipt, sa.select(sa.literal(4).label("order_id")))
            with pytest.raises(sa.exc.ProgrammingError):
                session.execute(sa.text("SELECT nonsense"))
            failed.rollback()
        jobq.enqueue(session, send_receipt, order_id=5)

    assert committed(shop) == [{"order_id": n} for n in (1, 2, 5)]


def test_a_session_whose_flush_has_failed_says_so_itself(shop: sa.Engine) -> None:
    with Session(shop) as session:
        session.add(Order(id=1))
        session.commit()
        session.expunge_all()
        session.add(Order(id=1))
        with pytest.raises(sa.exc.IntegrityError):
            session.flush()
        with pytest.raises(sa.exc.PendingRollbackError):
            jobq.enqueue(session, send_receipt, order_id=1)
        session.rollback()
        assert jobq.enqueue(session, send_receipt, order_id=1).created
