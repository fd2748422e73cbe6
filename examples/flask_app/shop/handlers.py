"""What is done after an order was taken. These are plain functions, so they run in threads.

Each runs in an app context of its own (see jobs.py), whose end removes `db.session`: what a job has not committed is
rolled back then, and a transaction that it left open or broken never reaches the next job.
"""

from __future__ import annotations

import jobq

from shop.database import db
from shop.models import Item, Order, Receipt

LOW, FULL = 3, 10

registry = jobq.Registry(queue="shop")


@registry.handler("receipt.send", max_attempts=8)
def send_receipt(order_id: int) -> jobq.Outcome | str:
    """Sends it once: a job may run twice, where a worker dies before it has said that the job is done."""
    order = db.session.get(Order, order_id)
    if order is None:
        raise jobq.Permanent(f"there is no order {order_id}")
    if order.receipt is not None:
        return jobq.Skip("sent before")
    order.receipt = Receipt(text=f"{order.quantity} x {order.item.name} for {order.email}")
    db.session.commit()
    return f"to {order.email}"


@registry.handler("item.restock", unique=True)
def restock(item_id: int) -> jobq.Outcome | None:
    """Unique: one job, however many orders ask for it meanwhile. It fills up and does not add, so twice is once."""
    item = db.session.get(Item, item_id, with_for_update=True)
    if item is None or item.stock >= LOW:
        return jobq.Skip("there is enough")
    item.stock = FULL
    db.session.commit()
    return None
