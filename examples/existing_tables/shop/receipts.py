"""Orders and their jobs, as the tables of one database that they are."""

from __future__ import annotations

from typing import Any

import jobq
import sqlalchemy as sa
from jobq.tables import all_jobs
from sqlalchemy.orm import Session

from shop.jobs import send_receipt
from shop.models import Customer, Order

ORDER_ID = all_jobs.c.args["order_id"].as_integer()
IS_RECEIPT = all_jobs.c.kind == send_receipt.kind
OF_ORDER = sa.and_(IS_RECEIPT, Order.id == ORDER_ID)


def report(session: Session) -> list[sa.Row[Any]]:
    """Each order with the job that sends its receipt: `row.Order`, and `row.state` ... of the job, None without one."""
    joined = sa.select(Order, all_jobs).outerjoin(all_jobs, OF_ORDER)
    return list(session.execute(joined.order_by(Order.id, all_jobs.c.id)))


def catch_up(session: Session) -> int:
    """A job for every order that has neither a receipt nor a job, in one statement. Returns how many."""
    without = sa.select(Order.id.label("order_id")).outerjoin(all_jobs, OF_ORDER)
    without = without.where(Order.receipt_at.is_(None), all_jobs.c.id.is_(None))
    return jobq.enqueue_select(session, send_receipt, without)


def correct_address(session: Session, name: str, email: str) -> tuple[int, ...]:
    """A new address, and another try for this customer's jobs that came to nothing. Returns the ids of the jobs."""
    customer = session.scalars(sa.select(Customer).where(Customer.name == name)).one()
    customer.email = email
    theirs = ORDER_ID.in_(sa.select(Order.id).where(Order.customer == customer))
    return jobq.retry(session, IS_RECEIPT, all_jobs.c.state.in_(["dead", "cancelled"]), theirs).ids
