"""What `jobq run shop.jobs:app` runs."""

from __future__ import annotations

import jobq
import sqlalchemy as sa

from shop.database import sessions
from shop.models import Order

app = jobq.App()


@app.handler("receipt.send")
def send_receipt(order_id: int) -> jobq.Outcome | str:
    with sessions().begin() as session:
        order = session.get_one(Order, order_id, with_for_update={"of": Order})
        if order.receipt_at is not None:
            return jobq.Skip("sent before")  # a job may run twice
        if "@" not in order.customer.email:
            raise jobq.Permanent(f"no address: {order.customer.email}")
        order.receipt_at = sa.func.now()
        return f"to {order.customer.email}"
