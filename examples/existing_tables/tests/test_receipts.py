from __future__ import annotations

import jobq
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session, sessionmaker

from shop import jobs
from shop.models import Customer, Order
from shop.receipts import catch_up, correct_address, report


def order_of(session: Session, total: int) -> Order:
    return session.scalars(sa.select(Order).where(Order.total == total)).one()


def states(session: Session) -> dict[int, str | None]:
    """The state of each order's job, by the order's total."""
    return {row.Order.total: row.state for row in report(session)}


def test_orders_without_a_job_are_in_the_report_too(session: Session) -> None:
    jobq.enqueue(session, jobs.send_receipt, order_id=order_of(session, 7).id)

    assert states(session) == {30: None, 12: None, 7: "pending", 50: None}


def test_each_order_that_has_no_receipt_gets_one_job(session: Session) -> None:
    jobq.enqueue(session, jobs.send_receipt, order_id=order_of(session, 7).id)

    assert catch_up(session) == 2
    assert catch_up(session) == 0
    assert states(session) == {30: None, 12: "pending", 7: "pending", 50: "pending"}


def test_jobs_of_other_kinds_are_nobodys_receipt(session: Session) -> None:
    jobq.enqueue(session, jobq.kind("order.archive", queue="archive"), order_id=order_of(session, 7).id)
    jobq.enqueue(session, jobq.kind("stock.count", queue="stock"), shelf="A")

    assert set(states(session).values()) == {None}


def test_with_a_new_address_the_jobs_of_that_customer_are_tried_again(session: Session) -> None:
    catch_up(session)
    jobq.cancel(session, sa.true())

    assert len(correct_address(session, "Bob", "bob@example.org")) == 2
    assert states(session) == {30: None, 12: "pending", 7: "cancelled", 50: "pending"}
    session.rollback()
    assert session.scalars(sa.select(Customer.email).where(Customer.name == "Bob")).one() == "bob at example.org"
    assert set(states(session).values()) == {None}


def test_a_receipt_is_sent_once(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "sessions", lambda: sessionmaker(session.connection()))
    first, second = order_of(session, 7), order_of(session, 12)

    assert jobs.send_receipt(order_id=first.id) == "to ada@example.org"
    assert jobs.send_receipt(order_id=first.id) == jobq.Skip("sent before")
    with pytest.raises(jobq.Permanent, match="no address: bob at example"):
        jobs.send_receipt(order_id=second.id)
