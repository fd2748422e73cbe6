"""Where the reader takes orders."""

from __future__ import annotations

from sqlalchemy.orm import Session

import jobq

from .jobs import send_receipt
from .models import Order


def take_order(session: Session, what: str) -> Order:
    order = Order(what=what)
    session.add(order)
    jobq.enqueue(session, send_receipt, order_id=jobq.pk(order))
    session.commit()
    return order
